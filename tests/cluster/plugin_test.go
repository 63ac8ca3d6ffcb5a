// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
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

var eight = bed.Resource{Capacity: 8, Allocatable: 8}

// gpuNode is a kubelet with weft's plugin on the machine of four bridged pairs, eight GPUs taken.
type gpuNode struct {
	*bed.Kubelet
	machine machine
	plugin  *bed.Process
}

func startGPUNode(t *testing.T) *gpuNode {
	t.Helper()
	n := &gpuNode{Kubelet: bed.StartKubelet(t, bed.Shared(t)), machine: pairs8(t)}
	n.machine.write(t, machineFile(n.Kubelet))
	n.plugin = bed.StartPlugin(t, n.Kubelet, machineFile(n.Kubelet))
	n.WaitResource(t, 5*time.Second, bed.GPU, eight)
	return n
}

// settled checks what must hold after any upheaval: eight GPUs again, the pod never touched, no
// pod failed, and the next pod gets devices as if nothing had happened.
func (n *gpuNode) settled(t *testing.T, within time.Duration, before *v1.Pod) {
	t.Helper()
	n.WaitResource(t, within, bed.GPU, eight)
	n.untouched(t, before)
	next := n.Run(t, n.Pod("after", bed.GPU, 2))
	n.gets(t, next.Name, 1)
	n.untouched(t, before)
	for _, pod := range n.Pods(t) {
		if pod.Status.Phase == v1.PodFailed {
			t.Errorf("pod %s failed: %s: %s", pod.Name, pod.Status.Reason, pod.Status.Message)
		}
	}
}

// becomes gives the node's machine these unhealthy devices, and has the plugin look at it now
// instead of within half a minute.
func (n *gpuNode) becomes(t *testing.T, unhealthy ...int) {
	t.Helper()
	n.machine.write(t, machineFile(n.Kubelet), unhealthy...)
	n.plugin.Signal(syscall.SIGHUP)
}

// untouched checks that the pod's container is the one it had.
func (n *gpuNode) untouched(t *testing.T, before *v1.Pod) {
	t.Helper()
	now := n.Get(t, before.Name)
	was, is := before.Status.ContainerStatuses[0], now.Status.ContainerStatuses[0]
	if now.UID != before.UID || is.ContainerID != was.ContainerID || is.RestartCount != 0 || now.Status.Phase != v1.PodRunning {
		t.Errorf("pod %s was touched: %s, container %s (was %s), %d restarts", now.Name, now.Status.Phase,
			is.ContainerID, was.ContainerID, is.RestartCount)
	}
	id := strings.TrimPrefix(was.ContainerID, is.ContainerID[:strings.Index(is.ContainerID, "://")+3])
	for _, c := range n.CRI.Containers(t) {
		if c.ID == id && c.State == "CONTAINER_RUNNING" {
			return
		}
	}
	t.Errorf("container %s of pod %s does not run", id, before.Name)
}

// gets checks that the pod was given the pair of that rank, and that alone.
func (n *gpuNode) gets(t *testing.T, pod string, rank int) {
	t.Helper()
	pair := n.machine.pairs()[rank]
	if got, want := granted(t, n.Kubelet, pod, n.plain(t)), n.machine.grantOf(pair[:]); !got.equal(want) {
		t.Errorf("pod %s\n got %v\nwant %v", pod, got, want)
	}
}

// plain is a pod without devices on the same kubelet.
func (n *gpuNode) plain(t *testing.T) string {
	t.Helper()
	pod := n.Pod("plain", "", 0)
	for _, p := range n.Pods(t) {
		if p.Name == pod.Name {
			return pod.Name
		}
	}
	return n.Run(t, pod).Name
}

// Pods of two GPUs get bridged pairs, one after the other, and a pair that is given back is given
// again. On this machine every pair is as good as another by its links and sockets; the first one
// opens a socket, the second one uses that socket up (the next in PCI order, as it happens), and so on.
func TestPluginPairs(t *testing.T) {
	t.Parallel()
	n := startGPUNode(t)
	var pods []string
	for rank := range n.machine.pairs() {
		pod := n.Run(t, n.Pod(fmt.Sprint("pair", rank), bed.GPU, 2))
		n.gets(t, pod.Name, rank)
		pods = append(pods, pod.Name)
	}
	n.Delete(t, pods[2])
	n.gets(t, n.Run(t, n.Pod("again", bed.GPU, 2)).Name, 2)
}

// A pod of several containers: each gets its own devices, the init container's are used again.
func TestPluginInitContainers(t *testing.T) {
	t.Parallel()
	n := startGPUNode(t)
	pod := n.Pod("init", bed.GPU, 4)
	first := bed.Container("first", bed.GPU, 2)
	first.Command = []string{"exit", "0", "50ms"}
	pod.Spec.InitContainers = []v1.Container{first}
	n.Run(t, pod)

	ids := func(container string) map[string]bool {
		set := map[string]bool{}
		for _, env := range n.CRI.Config(t, pod.Name, container).Envs {
			if env.Key == "NVIDIA_VISIBLE_DEVICES" {
				for _, id := range strings.Split(string(env.Value), ",") {
					set[id] = true
				}
			}
		}
		return set
	}
	pairs, main := n.machine.pairs(), ids("main")
	// The main container must take over the init container's pair; of what is left the pair on the
	// same socket is the nearest.
	want := map[string]bool{}
	for _, pair := range pairs[:2] {
		want[n.machine.Devices[pair[0]].ID], want[n.machine.Devices[pair[1]].ID] = true, true
	}
	if fmt.Sprint(main) != fmt.Sprint(want) {
		t.Errorf("main has %v, want %v", main, want)
	}
	for id := range ids("first") {
		if !main[id] {
			t.Errorf("the init container's %s was not used again", id)
		}
	}
}

func TestPluginKubeletRestart(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			n := startGPUNode(t)
			pod := n.Run(t, n.Pod("before", bed.GPU, 2))
			n.Stop(t, sig)
			n.Start(t)
			n.settled(t, 5*time.Second, pod)
		})
	}
}

// The folder's content goes, but for the kubelet's own socket, under a running kubelet.
func TestPluginFolderWiped(t *testing.T) {
	t.Parallel()
	n := startGPUNode(t)
	pod := n.Run(t, n.Pod("before", bed.GPU, 2))
	wipe(t, n.PluginDir, "kubelet.sock")
	bed.Poll(t, 20*time.Second, "the plugin serves again", func() error { return ownSocket(n.PluginDir) })
	n.settled(t, 20*time.Second, pod)
}

// All of it goes, the kubelet's socket and checkpoint too, while the kubelet is away.
func TestPluginFolderWipedWhileKubeletIsAway(t *testing.T) {
	t.Parallel()
	n := startGPUNode(t)
	n.Stop(t, syscall.SIGTERM)
	wipe(t, n.PluginDir)
	n.Start(t)
	n.WaitResource(t, 20*time.Second, bed.GPU, eight)
	n.gets(t, n.Run(t, n.Pod("after", bed.GPU, 2)).Name, 0)
}

func wipe(t *testing.T, dir string, except ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if len(except) == 0 || entry.Name() != except[0] {
			if err := os.RemoveAll(filepath.Join(dir, entry.Name())); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// ownSocket is an error unless there is a socket beside the kubelet's.
func ownSocket(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Type()&os.ModeSocket != 0 && entry.Name() != "kubelet.sock" {
			return nil
		}
	}
	return fmt.Errorf("no socket of a plugin in %s", dir)
}

func TestPluginKilled(t *testing.T) {
	t.Parallel()
	n := startGPUNode(t)
	pod := n.Run(t, n.Pod("before", bed.GPU, 2))
	n.plugin.Kill()
	n.WaitResource(t, 5*time.Second, bed.GPU, bed.Resource{Capacity: 8})
	n.plugin = bed.StartPlugin(t, n.Kubelet, machineFile(n.Kubelet))
	n.settled(t, 5*time.Second, pod)
	// What the killed one left behind is gone: one socket, the living plugin's.
	var sockets []string
	entries, err := os.ReadDir(n.PluginDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.Type()&os.ModeSocket != 0 {
			sockets = append(sockets, entry.Name())
		}
	}
	if len(sockets) != 2 {
		t.Errorf("sockets in the plugin folder: %q, want the kubelet's and one of ours", sockets)
	}
}

// The plugin is there before the kubelet.
func TestPluginFirst(t *testing.T) {
	t.Parallel()
	n := startGPUNode(t)
	n.Stop(t, syscall.SIGTERM)
	n.plugin.Kill()
	if err := os.RemoveAll(n.PluginDir); err != nil {
		t.Fatal(err)
	}
	n.plugin = bed.StartPlugin(t, n.Kubelet, machineFile(n.Kubelet))
	bed.Hold(t, 2*time.Second, "the plugin waits for the kubelet", n.plugin.Check)
	n.Start(t)
	n.WaitResource(t, 20*time.Second, bed.GPU, eight)
}

// Others register the same resource. The kubelet tells a plugin nothing about that; but when the
// stream of the older one ends it closes the newer one's too. The first time weft's plugin registers
// again; the second time within a minute it says what goes on and keeps away, instead of throwing
// the other out again and again.
func TestPluginStranger(t *testing.T) {
	t.Parallel()
	k, m := bed.StartKubelet(t, bed.Shared(t)), pairs8(t)
	m.write(t, machineFile(k))
	four := bed.Resource{Capacity: 4, Allocatable: 4}
	older := []*bed.Stranger{bed.StartStranger(t, k, bed.GPU, 4), bed.StartStranger(t, k, bed.GPU, 4)}
	k.WaitResource(t, 5*time.Second, bed.GPU, four)
	plugin := bed.StartPlugin(t, k, machineFile(k))
	k.WaitResource(t, 5*time.Second, bed.GPU, eight)
	n := &gpuNode{Kubelet: k, machine: m, plugin: plugin}
	pod := n.Run(t, n.Pod("before", bed.GPU, 2))

	says := func() error {
		for _, line := range strings.Split(plugin.Output(), "\n") {
			if strings.Contains(line, "another plugin") && strings.Contains(line, bed.GPU) {
				return nil
			}
		}
		return fmt.Errorf("the plugin does not speak of another one; its last lines:\n%s", plugin.Tail(5))
	}
	older[0].Stop()
	bed.Poll(t, 5*time.Second, "the plugin has registered again", func() error {
		if n := k.Registrations(t, bed.GPU); n < 4 {
			return fmt.Errorf("%d registrations of the resource", n)
		}
		return nil
	})
	k.WaitResource(t, 5*time.Second, bed.GPU, eight)
	if says() == nil {
		t.Errorf("the plugin speaks of another one after one end of its stream:\n%s", plugin.Tail(5))
	}
	older[1].Stop()
	bed.Poll(t, 5*time.Second, "the plugin says that another one registers its resource", says)
	defer bed.StartStranger(t, k, bed.GPU, 4).Stop()
	k.WaitResource(t, 5*time.Second, bed.GPU, four)
	bed.Hold(t, 5*time.Second, "weft's plugin keeps away", func() error {
		if got := k.Resource(t, bed.GPU); got != four {
			return fmt.Errorf("the resource is %+v", got)
		}
		return plugin.Check()
	})
	n.untouched(t, pod)
}

// A node without GPUs is a node like any other, and GPUs that come later are taken without a word.
func TestPluginNoDevices(t *testing.T) {
	t.Parallel()
	k, m := bed.StartKubelet(t, bed.Shared(t)), pairs8(t)
	m.writeEmpty(t, machineFile(k))
	plugin := bed.StartPlugin(t, k, machineFile(k))
	bed.Hold(t, 3*time.Second, "nothing is advertised", func() error {
		if got := k.Resource(t, bed.GPU); got != (bed.Resource{}) {
			return fmt.Errorf("the resource is %+v", got)
		}
		return plugin.Check()
	})
	m.write(t, machineFile(k))
	k.WaitResource(t, 40*time.Second, bed.GPU, eight)
}

// A GPU that fails leaves allocatable, its pod stays, and it is back when it has recovered.
func TestPluginHealth(t *testing.T) {
	t.Parallel()
	n := startGPUNode(t)
	pod := n.Run(t, n.Pod("before", bed.GPU, 2))
	inUse, free := n.machine.pairs()[0][0], n.machine.pairs()[1][0]
	for _, device := range []int{free, inUse} {
		n.becomes(t, device)
		n.WaitResource(t, 5*time.Second, bed.GPU, bed.Resource{Capacity: 8, Allocatable: 7})
		n.becomes(t)
		n.WaitResource(t, 5*time.Second, bed.GPU, eight)
	}
	// A pair that lacks a device is no pair: the next pod gets another one.
	n.becomes(t, free)
	n.WaitResource(t, 5*time.Second, bed.GPU, bed.Resource{Capacity: 8, Allocatable: 7})
	n.gets(t, n.Run(t, n.Pod("other", bed.GPU, 2)).Name, 2)
	n.untouched(t, pod)
}

// A kubelet that hangs for a while hears of a change when it goes on.
func TestPluginKubeletHangs(t *testing.T) {
	t.Parallel()
	n := startGPUNode(t)
	pod := n.Run(t, n.Pod("before", bed.GPU, 2))
	n.Signal(syscall.SIGSTOP)
	n.becomes(t, n.machine.pairs()[3][0])
	bed.Hold(t, 3*time.Second, "the plugin waits", n.plugin.Check)
	n.Signal(syscall.SIGCONT)
	n.WaitResource(t, 5*time.Second, bed.GPU, bed.Resource{Capacity: 8, Allocatable: 7})
	n.becomes(t)
	n.settled(t, 5*time.Second, pod)
}

// A container that ends is started again with the devices it had, also while the plugin is away.
func TestPluginContainerRestart(t *testing.T) {
	t.Parallel()
	n := startGPUNode(t)
	pod := n.Run(t, n.Pod("again", bed.GPU, 2))
	n.plugin.Kill()
	n.CRI.Exit(t, pod.Name, "main", 1)
	bed.Poll(t, 25*time.Second, "the container runs again", func() error {
		status := n.Get(t, pod.Name).Status
		if len(status.ContainerStatuses) == 1 && status.ContainerStatuses[0].RestartCount == 1 && status.ContainerStatuses[0].State.Running != nil {
			return nil
		}
		return fmt.Errorf("%+v", status.ContainerStatuses)
	})
	var grants []string
	for _, req := range n.CRI.Created(t) {
		var devices []string
		for _, d := range req.Config.Devices {
			devices = append(devices, d.HostPath+":"+d.ContainerPath+":"+d.Permissions)
		}
		slices.Sort(devices)
		grants = append(grants, strings.Join(devices, " "))
	}
	pair := n.machine.pairs()[0]
	want := strings.Join(n.machine.grantOf(pair[:]).Devices, " ")
	if len(grants) != 2 || grants[0] != want || grants[1] != want {
		t.Errorf("device nodes of the two lives\n got %q\nwant %q", grants, want)
	}
}
