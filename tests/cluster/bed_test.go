// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"syscall"
	"testing"
	"time"

	"weft.dev/weft/tests/cluster/bed"
)

// The bed by itself: a kubelet takes a plugin's devices, a pod gets what the plugin says, and a
// restart of the kubelet leaves the pod alone. What fails here is no fault of weft's.
func TestBed(t *testing.T) {
	t.Parallel()
	k := bed.StartKubelet(t, bed.Shared(t))
	s := bed.StartStranger(t, k, "example.test/thing", 3)
	k.WaitResource(t, 5*time.Second, "example.test/thing", bed.Resource{Capacity: 3, Allocatable: 3})

	if n := k.Registrations(t, "example.test/thing"); n != 1 {
		t.Errorf("%d registrations, want 1", n)
	}

	pod := k.Run(t, k.Pod("bed", "example.test/thing", 2))
	config := k.CRI.Config(t, pod.Name, "main")
	found := map[string]string{}
	for _, env := range config.Envs {
		found[env.Key] = string(env.Value)
	}
	if found["STRANGER"] != "yes, a=b" {
		t.Errorf("environment %v lacks the plugin's variable", found)
	}
	if len(config.Devices) != 1 || config.Devices[0].ContainerPath != "/dev/stranger" {
		t.Errorf("devices %v, want /dev/stranger alone", config.Devices)
	}

	k.Stop(t, syscall.SIGKILL)
	s.Stop()
	k.Start(t)
	k.WaitResource(t, 5*time.Second, "example.test/thing", bed.Resource{})
	if again := k.Get(t, pod.Name); again.Status.ContainerStatuses[0].RestartCount != 0 || len(k.CRI.Created(t)) != 1 {
		t.Errorf("the restart of the kubelet touched the pod: %+v", again.Status)
	}
}
