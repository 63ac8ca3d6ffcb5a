// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"weft.dev/weft/tests/cluster/bed"
)

// slice is a MIG instance of the machine's file.
type slice struct {
	id, profile string
	parent      int
}

// migMachine writes a machine of one whole GPU and these instances.
func migMachine(t *testing.T, path string, slices ...slice) {
	t.Helper()
	devices := []map[string]any{{"id": "GPU-00000000-0000-0000-0000-000000000000", "index": 0, "nodes": []string{"/dev/nvidia0"}}}
	for i, s := range slices {
		devices = append(devices, map[string]any{"id": s.id, "index": i + 1, "parent": s.parent, "partition": i,
			"profile": s.profile, "nodes": []string{"/dev/nvidia1"}})
	}
	writeJSON(t, path, map[string]any{"weft_machine": 1, "vendor": "nvidia", "devices": devices,
		"common_nodes": []string{"/dev/nvidiactl"}})
}

// visible are the ids in the container's NVIDIA_VISIBLE_DEVICES.
func visible(t *testing.T, k *bed.Kubelet, pod string) []string {
	t.Helper()
	for _, env := range k.CRI.Config(t, pod, "main").Envs {
		if env.Key == "NVIDIA_VISIBLE_DEVICES" {
			ids := strings.Split(string(env.Value), ",")
			slices.Sort(ids)
			return ids
		}
	}
	return nil
}

// MIG instances as NVIDIA's mixed strategy names them, each profile a resource; instances that are
// made anew while a pod runs change the node within seconds, and the pod is not touched.
func TestPluginMIG(t *testing.T) {
	t.Parallel()
	k := bed.StartKubelet(t, bed.Shared(t))
	small := func(n int) slice {
		return slice{fmt.Sprintf("MIG-0000000%d-0000-0000-0000-000000000000", n), "1g.10gb", 1}
	}
	big := slice{"MIG-b0000000-0000-0000-0000-000000000000", "3g.40gb+me", 1}
	migMachine(t, machineFile(k), small(1), small(2), small(3), big)
	plugin := bed.StartPlugin(t, k, machineFile(k), "--mig-strategy", "mixed")
	const smalls, bigs = "nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb.me"
	k.WaitResource(t, 5*time.Second, bed.GPU, bed.Resource{Capacity: 1, Allocatable: 1})
	k.WaitResource(t, 5*time.Second, smalls, bed.Resource{Capacity: 3, Allocatable: 3})
	k.WaitResource(t, 5*time.Second, bigs, bed.Resource{Capacity: 1, Allocatable: 1})

	pod := k.Run(t, k.Pod("small", smalls, 2))
	got := visible(t, k, pod.Name)
	if len(got) != 2 || !strings.HasPrefix(got[0], "MIG-0000000") || got[0] == got[1] {
		t.Errorf("a pod of two instances got %q", got)
	}
	if got := visible(t, k, k.Run(t, k.Pod("big", bigs, 1)).Name); !slices.Equal(got, []string{big.id}) {
		t.Errorf("a pod of the large instance got %q", got)
	}

	// the large one is gone, the small ones become five
	migMachine(t, machineFile(k), small(1), small(2), small(3), small(4), small(5))
	plugin.Signal(syscall.SIGHUP)
	k.WaitResource(t, 5*time.Second, smalls, bed.Resource{Capacity: 5, Allocatable: 5})
	k.WaitResource(t, 5*time.Second, bigs, bed.Resource{Capacity: 0, Allocatable: 0})
	k.WaitResource(t, 5*time.Second, bed.GPU, bed.Resource{Capacity: 1, Allocatable: 1})
	now := k.Get(t, pod.Name)
	if now.UID != pod.UID || now.Status.ContainerStatuses[0].ContainerID != pod.Status.ContainerStatuses[0].ContainerID {
		t.Error("the running pod was touched")
	}
	next := visible(t, k, k.Run(t, k.Pod("next", smalls, 3)).Name)
	if len(next) != 3 || slices.ContainsFunc(next, func(id string) bool { return slices.Contains(got, id) }) {
		t.Errorf("the running pod has %q, the next one got %q", got, next)
	}
}

// Time-slicing as NVIDIA's config file says it: each of eight GPUs three times, under another name;
// a pod of two gets two GPUs; a device that fails takes its three ids with it.
func TestPluginShared(t *testing.T) {
	t.Parallel()
	k := bed.StartKubelet(t, bed.Shared(t))
	m := pairs8(t)
	m.write(t, machineFile(k))
	config := machineFile(k) + ".config"
	bed.Write(t, config, `version: v1
sharing:
  timeSlicing:
    renameByDefault: true
    resources:
    - {name: nvidia.com/gpu, replicas: 3}
`)
	plugin := bed.StartPlugin(t, k, machineFile(k), "--config", config)
	const shared = bed.GPU + ".shared"
	k.WaitResource(t, 5*time.Second, shared, bed.Resource{Capacity: 24, Allocatable: 24})
	used := map[string]int{}
	for i := range 8 {
		got := visible(t, k, k.Run(t, k.Pod(fmt.Sprint("two", i), shared, 2)).Name)
		if len(got) != 2 {
			t.Errorf("pod %d of two got %q", i, got)
		}
		for _, id := range got {
			used[id]++
		}
	}
	// distributed: sixteen ids over eight GPUs are two of each
	for id, count := range used {
		if count != 2 {
			t.Errorf("GPU %s is used by %d pods, want 2", id, count)
		}
	}
	m.write(t, machineFile(k), 5)
	plugin.Signal(syscall.SIGHUP)
	k.WaitResource(t, 5*time.Second, shared, bed.Resource{Capacity: 24, Allocatable: 21})
	m.write(t, machineFile(k))
	plugin.Signal(syscall.SIGHUP)
	k.WaitResource(t, 5*time.Second, shared, bed.Resource{Capacity: 24, Allocatable: 24})
}
