// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weft.dev/weft/tests/cluster/bed"
)

// soon is how long the node may take to show a change: the kubelet tells its state once a second.
const soon = 2 * time.Second

// configMap is a file as the kubelet mounts it from a ConfigMap: each content in a folder of its
// own, and one link that is set anew.
type configMap struct {
	dir     string
	written int
}

func (c *configMap) path() string { return filepath.Join(c.dir, "plugin.yaml") }

func (c *configMap) set(t *testing.T, content string) {
	t.Helper()
	c.written++
	name := fmt.Sprintf("..version_%d", c.written)
	bed.Write(t, filepath.Join(c.dir, name, "plugin.yaml"), content)
	fresh := filepath.Join(c.dir, "..data_tmp")
	for _, err := range []error{os.Symlink(name, fresh), os.Rename(fresh, filepath.Join(c.dir, "..data"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if c.written == 1 {
		if err := os.Symlink("..data/plugin.yaml", c.path()); err != nil {
			t.Fatal(err)
		}
	} else if err := os.RemoveAll(filepath.Join(c.dir, fmt.Sprintf("..version_%d", c.written-1))); err != nil {
		t.Fatal(err)
	}
}

// shared is NVIDIA's file with so many ids of each GPU, under that name if it is not empty.
func shared(replicas int, rename string) string {
	if rename != "" {
		rename = ", rename: " + rename
	}
	return fmt.Sprintf("version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - {name: nvidia.com/gpu, replicas: %d%s}\n",
		replicas, rename)
}

// The file that says what is advertised changes while a pod runs: the node shows it within two
// seconds, the pod is not touched, and a file that cannot be used changes nothing.
func TestPluginReload(t *testing.T) {
	t.Parallel()
	k := bed.StartKubelet(t, bed.Shared(t))
	m := pairs8(t)
	m.write(t, machineFile(k))
	config := configMap{dir: filepath.Join(k.Dir, "config")}
	config.set(t, shared(2, ""))
	plugin := bed.StartPlugin(t, k, machineFile(k), "--config", config.path())
	of := func(n int64) bed.Resource { return bed.Resource{Capacity: n, Allocatable: n} }
	k.WaitResource(t, 5*time.Second, bed.GPU, of(16))
	pod := k.Run(t, k.Pod("before", bed.GPU, 2))
	had := visible(t, k, pod.Name)
	n := &gpuNode{Kubelet: k, machine: m, plugin: plugin}

	const slice = "nvidia.com/slice"
	config.set(t, shared(3, slice))
	k.WaitResource(t, soon, slice, of(24))
	k.WaitResource(t, soon, bed.GPU, of(0))
	n.untouched(t, pod)
	if got := visible(t, k, k.Run(t, k.Pod("slice", slice, 2)).Name); len(got) != 2 {
		t.Errorf("a pod of two slices got %q", got)
	}

	// one id each is no sharing: an error with its line, and the last good file stays
	config.set(t, shared(1, slice))
	said := time.Now().Add(soon)
	for !strings.Contains(plugin.Output(), `"event":"config-not-used"`) && time.Now().Before(said) {
		time.Sleep(50 * time.Millisecond)
	}
	if out := plugin.Output(); !strings.Contains(out, "plugin.yaml:5: sharing.timeSlicing.resources[0].replicas") {
		t.Errorf("the bad file is not named:\n%s", plugin.Tail(10))
	}
	time.Sleep(soon)
	if got := k.Resource(t, slice); got != of(24) {
		t.Errorf("after a bad file the node has %+v slices, want 24", got)
	}

	// a changed machine needs no signal either
	m.write(t, machineFile(k), 5)
	k.WaitResource(t, soon, slice, bed.Resource{Capacity: 24, Allocatable: 21})
	m.write(t, machineFile(k))
	k.WaitResource(t, soon, slice, of(24))

	changes := 0
	for i := range 20 {
		config.set(t, shared(2+i%4, slice))
		k.WaitResource(t, soon, slice, of(int64(8*(2+i%4))))
		changes++
	}
	if changes < 20 {
		t.Errorf("%d changes were made, want 20", changes)
	}

	config.set(t, "version: v1\n")
	k.WaitResource(t, soon, bed.GPU, of(8))
	k.WaitResource(t, soon, slice, of(0))
	n.untouched(t, pod)
	if now := visible(t, k, pod.Name); strings.Join(now, ",") != strings.Join(had, ",") {
		t.Errorf("the pod had %q, now %q", had, now)
	}
	if got := visible(t, k, k.Run(t, k.Pod("after", bed.GPU, 2)).Name); len(got) != 2 {
		t.Errorf("a pod of two GPUs got %q", got)
	}
	if !plugin.Alive() {
		t.Errorf("the plugin ended:\n%s", plugin.Tail(10))
	}
}
