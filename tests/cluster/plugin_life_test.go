// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"weft.dev/weft/tests/cluster/bed"
)

// fetchPage is the body of one page, or why there is none, and whether its status is 200.
func fetchPage(url string) (string, bool) {
	resp, err := http.Get(url)
	if err != nil {
		return err.Error(), false
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error(), false
	}
	return string(text), resp.StatusCode == http.StatusOK
}

// standby starts a second plugin beside the first, with a log of its own, and waits until it is
// ready as standby.
func (n *gpuNode) standby(t *testing.T, args ...string) *bed.Process {
	t.Helper()
	listen := bed.FreeAddress(t)
	second := bed.StartPlugin(t, n.Kubelet, machineFile(n.Kubelet), append([]string{"--listen", listen}, args...)...)
	bed.Poll(t, 5*time.Second, "the second plugin is ready as standby", func() error {
		if text, ready := fetchPage("http://" + listen + "/readyz"); !ready || !strings.Contains(text, "role=standby") {
			return fmt.Errorf("ready %v: %s", ready, text)
		}
		return second.Check()
	})
	return second
}

// registeredAgain waits until the kubelet counts one registration more, and says how long after
// since that was.
func (n *gpuNode) registeredAgain(t *testing.T, before int, since time.Time) time.Duration {
	t.Helper()
	bed.Poll(t, 5*time.Second, "another registration", func() error {
		if now := n.Registrations(t, bed.GPU); now <= before {
			return fmt.Errorf("%d registrations", now)
		}
		return nil
	})
	return time.Since(since)
}

// An update with surge: the new plugin is ready beside the old one, which is told to end only then;
// the new one registers within a second of that end. So it does when the old one is killed.
func TestPluginStandby(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			n := startGPUNode(t)
			pod := n.Run(t, n.Pod("before", bed.GPU, 2))
			second := n.standby(t)
			bed.Hold(t, time.Second, "one plugin is registered", func() error {
				if count := n.Registrations(t, bed.GPU); count != 1 {
					return fmt.Errorf("%d registrations", count)
				}
				return second.Check()
			})
			if _, err := n.plugin.End(sig, 10*time.Second); err != nil {
				t.Fatal(err)
			}
			took := n.registeredAgain(t, 1, time.Now())
			t.Logf("registered %v after the first one's end", took.Round(time.Millisecond))
			if took > time.Second {
				t.Errorf("registered %v after the first one's end, want 1 s at most", took)
			}
			n.plugin = second
			n.settled(t, 5*time.Second, pod)
		})
	}
}

// NVIDIA's plugin serves the resource: weft names it, is not ready, and registers when it is gone.
func TestPluginBesideNVIDIA(t *testing.T) {
	t.Parallel()
	k, m := bed.StartKubelet(t, bed.Shared(t)), pairs8(t)
	m.write(t, machineFile(k))
	nvidia := bed.StartNVIDIA(t, k, bed.GPU, "GPU-other-a", "GPU-other-b")
	two := bed.Resource{Capacity: 2, Allocatable: 2}
	k.WaitResource(t, 5*time.Second, bed.GPU, two)
	listen := bed.FreeAddress(t)
	plugin, url := bed.StartPlugin(t, k, machineFile(k), "--listen", listen), "http://"+listen
	bed.Hold(t, 3*time.Second, "NVIDIA's plugin stays alone", func() error {
		if got := k.Resource(t, bed.GPU); got != two {
			return fmt.Errorf("the resource is %+v", got)
		}
		return plugin.Check()
	})
	if text, ready := fetchPage(url + "/readyz"); ready || !strings.Contains(text, "nvidia-gpu.sock") {
		t.Errorf("ready %v: %s", ready, text)
	}
	if text, _ := fetchPage(url + "/metrics"); !strings.Contains(text, `weft_plugin_rival{resource="nvidia.com/gpu",socket="nvidia-gpu.sock"} 1`) {
		t.Errorf("the metrics do not name NVIDIA's socket:\n%s", text)
	}
	nvidia.Stop()
	k.WaitResource(t, 5*time.Second, bed.GPU, eight)
	bed.Poll(t, 3*time.Second, "ready", func() error {
		if text, ready := fetchPage(url + "/readyz"); !ready {
			return fmt.Errorf("%s", text)
		}
		return nil
	})
}

// A plugin of no known name registers later: the kubelet asks that one, while our stream stays open.
// weft names it by its devices and takes the resource back after a while: by then it is gone.
func TestPluginUsurped(t *testing.T) {
	if long(2) == 1 {
		t.Skip("takes a minute: WEFT_LONG=1 runs it")
	}
	t.Parallel()
	k, m := bed.StartKubelet(t, bed.Shared(t)), pairs8(t)
	m.write(t, machineFile(k))
	listen := bed.FreeAddress(t)
	n := &gpuNode{Kubelet: k, machine: m, plugin: bed.StartPlugin(t, k, machineFile(k), "--listen", listen)}
	n.WaitResource(t, 5*time.Second, bed.GPU, eight)
	pod := n.Run(t, n.Pod("before", bed.GPU, 2))
	stranger := bed.StartStranger(t, k, bed.GPU, 4)
	n.WaitHealthy(t, 5*time.Second, bed.GPU, 4)
	bed.Poll(t, 15*time.Second, "the other plugin is named", func() error {
		if text, _ := fetchPage("http://" + listen + "/metrics"); !strings.Contains(text, `weft_plugin_rival{resource="nvidia.com/gpu"`) {
			return fmt.Errorf("the metrics do not name it")
		}
		return nil
	})
	stranger.Stop()
	n.WaitHealthy(t, 20*time.Second, bed.GPU, 8)
	n.settled(t, 5*time.Second, pod)
}

// The plugin watcher's way: found without Register, and found again by a restarted kubelet; what
// the kubelet does not heal itself, a stream that ended while the socket stayed, the plugin does.
func TestPluginWatched(t *testing.T) {
	t.Parallel()
	k, m := bed.StartKubelet(t, bed.Shared(t)), pairs8(t)
	m.write(t, machineFile(k))
	registry := filepath.Join(k.Dir, "kubelet/plugins_registry")
	n := &gpuNode{Kubelet: k, machine: m}
	older := bed.StartStranger(t, k, bed.GPU, 4)
	n.WaitResource(t, 5*time.Second, bed.GPU, bed.Resource{Capacity: 4, Allocatable: 4})
	n.plugin = bed.StartPlugin(t, k, machineFile(k), "--registration", "watcher", "--registry-dir", registry)
	n.WaitResource(t, 5*time.Second, bed.GPU, eight)
	// The end of the older one's stream ends ours, in a socket that stays.
	offered := folderNames(t, registry)
	older.Stop()
	bed.Poll(t, 5*time.Second, "another socket", func() error {
		if now := folderNames(t, registry); slices.Equal(now, offered) {
			return fmt.Errorf("%q", now)
		}
		return nil
	})
	n.WaitHealthy(t, 5*time.Second, bed.GPU, 8)
	pod := n.Run(t, n.Pod("before", bed.GPU, 2))
	n.gets(t, pod.Name, 0)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		n.Stop(t, sig)
		n.Start(t)
		n.WaitHealthy(t, 10*time.Second, bed.GPU, 8)
		n.untouched(t, pod)
	}
	// Another plugin comes, and goes: the kubelet then asks nobody, though our stream is open.
	nvidia := bed.StartNVIDIA(t, k, bed.GPU, "GPU-other-a", "GPU-other-b")
	n.WaitResource(t, 5*time.Second, bed.GPU, bed.Resource{Capacity: 2, Allocatable: 2})
	nvidia.Stop()
	n.WaitResource(t, 5*time.Second, bed.GPU, eight)
	// The folder is wiped: the kubelet loses the socket, and finds a new one.
	wipe(t, registry)
	n.WaitResource(t, 10*time.Second, bed.GPU, eight)
	n.settled(t, 5*time.Second, pod)
	n.plugin.Kill()
	n.WaitResource(t, 5*time.Second, bed.GPU, bed.Resource{Capacity: 8})
	n.plugin = bed.StartPlugin(t, k, machineFile(k), "--registration", "watcher", "--registry-dir", registry)
	n.WaitResource(t, 5*time.Second, bed.GPU, eight)
}

// folderNames are the names in a folder.
func folderNames(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, entry := range entries {
		all = append(all, entry.Name())
	}
	return all
}

const (
	slices1g = "nvidia.com/mig-1g.10gb"
	slices3g = "nvidia.com/mig-3g.40gb"
)

// siteOfNVIDIA is a node as NVIDIA's plugin advertises it: eight whole GPUs, two large MIG instances,
// and three small ones with two replicas each; ids by resource.
func siteOfNVIDIA(t *testing.T, path string) map[string][]string {
	t.Helper()
	ids := map[string][]string{}
	var devices []map[string]any
	add := func(resource, id string, extra map[string]any) {
		device := map[string]any{"id": id, "index": len(devices), "nodes": []string{"/dev/nvidia0"}}
		maps.Copy(device, extra)
		devices = append(devices, device)
		if resource == slices1g {
			ids[resource] = append(ids[resource], id+"::0", id+"::1")
		} else {
			ids[resource] = append(ids[resource], id)
		}
	}
	for i := range 8 {
		add(bed.GPU, fmt.Sprintf("GPU-%08d-aaaa-bbbb-cccc-000000000000", i), nil)
	}
	for i := range 5 {
		resource, profile := slices1g, "1g.10gb"
		if i > 2 {
			resource, profile = slices3g, "3g.40gb"
		}
		add(resource, fmt.Sprintf("MIG-%08d-aaaa-bbbb-cccc-000000000000", i),
			map[string]any{"parent": 8, "partition": i, "profile": profile})
	}
	writeJSON(t, path, map[string]any{"weft_machine": 1, "vendor": "nvidia", "devices": devices, "common_nodes": []string{"/dev/nvidiactl"}})
	return ids
}

// A site switches from NVIDIA's plugin while pods run, with a restart of the kubelet in between and
// without: what stands in the kubelet's checkpoint, with NVIDIA's ids and answers, stays valid. The
// pods stay, their devices stay taken, and no device goes to two.
func TestPluginAfterNVIDIA(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]bool{"kubelet restarted": true, "kubelet stays": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := bed.StartKubelet(t, bed.Shared(t))
			failures := k.WatchFailures(t)
			ids := siteOfNVIDIA(t, machineFile(k))
			config := machineFile(k) + ".config"
			bed.Write(t, config, "version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - {name: "+slices1g+", replicas: 2}\n")
			var nvidia []*bed.Stranger
			var pods []*v1.Pod
			for _, resource := range []string{bed.GPU, slices1g, slices3g} {
				nvidia = append(nvidia, bed.StartNVIDIA(t, k, resource, ids[resource]...))
				count := int64(len(ids[resource]))
				k.WaitResource(t, 5*time.Second, resource, bed.Resource{Capacity: count, Allocatable: count})
				name := strings.ReplaceAll(strings.TrimPrefix(resource, "nvidia.com/"), ".", "-")
				pods = append(pods, k.Run(t, k.Pod(name, resource, count/2)))
			}
			before := k.PodDevices(t)
			taken := onlyOnce(t, before)
			if len(taken) != 8 { // 4 whole GPUs, 3 replicas, 1 large instance
				t.Fatalf("NVIDIA's plugin handed out %v", before)
			}
			checkpoint, err := os.ReadFile(filepath.Join(k.PluginDir, "kubelet_internal_checkpoint"))
			if err != nil {
				t.Fatal(err)
			}
			for id := range taken {
				if !strings.Contains(string(checkpoint), `"`+id+`"`) {
					t.Errorf("the checkpoint lacks %s", id)
				}
			}

			for _, plugin := range nvidia {
				plugin.Stop()
			}
			if restart {
				k.Stop(t, syscall.SIGTERM)
			}
			bed.StartPlugin(t, k, machineFile(k), "--config", config, "--mig-strategy", "mixed")
			if restart {
				k.Start(t)
			}
			for resource, list := range ids {
				k.WaitHealthy(t, 5*time.Second, resource, len(list))
				k.WaitResource(t, 5*time.Second, resource, bed.Resource{Capacity: int64(len(list)), Allocatable: int64(len(list))})
			}
			n := &gpuNode{Kubelet: k}
			for _, pod := range pods {
				n.untouched(t, pod)
			}
			bed.Poll(t, 5*time.Second, "the pods have what they had", func() error { // a kubelet that starts learns of its pods
				if now := k.PodDevices(t); !maps.EqualFunc(before, now, sameSet) {
					return fmt.Errorf("they had %v, now they have %v", before, now)
				}
				return nil
			})
			// All that is left goes to new pods, and nothing else.
			for resource, list := range ids {
				name := "rest-" + strings.ReplaceAll(strings.TrimPrefix(resource, "nvidia.com/"), ".", "-")
				k.Run(t, k.Pod(name, resource, int64(len(list)-len(list)/2)))
			}
			all := onlyOnce(t, k.PodDevices(t))
			for _, list := range ids {
				for _, id := range list {
					if !all[id] {
						t.Errorf("%s went to nobody", id)
					}
				}
			}
			for _, pod := range pods {
				n.untouched(t, pod)
			}
			failures.Check(t)
		})
	}
}

func sameSet(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

// onlyOnce are the ids that containers have; one that two have is an error.
func onlyOnce(t *testing.T, devices map[string][]string) map[string]bool {
	t.Helper()
	owner, set := map[string]string{}, map[string]bool{}
	for container, ids := range devices {
		for _, id := range ids {
			if other := owner[id]; other != "" {
				t.Errorf("%s is with %s and with %s", id, other, container)
			}
			owner[id], set[id] = container, true
		}
	}
	return set
}
