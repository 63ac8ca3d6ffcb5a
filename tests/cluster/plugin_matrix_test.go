// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"weft.dev/weft/tests/cluster/bed"
)

// The fault matrix: each fault is injected again and again on one node whose pods run on. What must
// hold is looked at from the kubelet's, the runtime's and the API server's side: no pod fails, no
// device goes to two, allocatable is right soon after it can be, and the plugin does not grow.

// matrixSoon is how long allocatable may lag, with a status update each second: the median of a fault's
// injections, as one may fall onto a busy moment of the machine.
const matrixSoon = 2 * time.Second

// injections is how often each fault is injected at least.
func injections() int {
	if long(2) > 1 {
		return 20
	}
	return 3
}

// matrixNode is a node under one fault.
type matrixNode struct {
	*bed.Kubelet
	t        *testing.T
	resource string
	capacity int64
	plugin   *bed.Process
	failures *bed.Failures
	keep     []*v1.Pod // run through all faults
	took     []time.Duration
	restarts bool // the plugin's process does not live through the fault
	first    footprint
	pods     int
	sockets  int // of the plugin, 0: one
}

// footprint is what must not grow.
type footprint struct {
	fds, threads int
	rss          int64
}

func (n *matrixNode) footprint() footprint {
	n.t.Helper()
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", n.plugin.Pid()))
	if err != nil {
		n.t.Fatal(err)
	}
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", n.plugin.Pid()))
	if err != nil {
		n.t.Fatal(err)
	}
	return footprint{fds: len(fds), threads: len(tasks), rss: n.plugin.Usage(n.t).RSS}
}

// begin waits for the node's devices and starts the pods that must not be touched.
func (n *matrixNode) begin() {
	n.t.Helper()
	n.failures = n.WatchFailures(n.t)
	n.WaitResource(n.t, 10*time.Second, n.resource, bed.Resource{Capacity: n.capacity, Allocatable: n.capacity})
	for i := range 2 {
		pod := n.Pod(fmt.Sprint("keep", i), n.resource, 1)
		pod.Spec.TerminationGracePeriodSeconds = seconds(1)
		n.keep = append(n.keep, n.Run(n.t, pod))
	}
}

func seconds(n int64) *int64 { return &n }

// come runs a pod and has it go again, as pods do: told, stopped, and only then gone.
func (n *matrixNode) come(count int64) {
	n.t.Helper()
	n.pods++
	pod := n.Pod(fmt.Sprint("pod", n.pods), n.resource, count)
	pod.Spec.TerminationGracePeriodSeconds = seconds(1)
	n.Run(n.t, pod)
	n.Leave(n.t, pod.Name)
}

// right waits until so many devices are allocatable; from is the moment from which it can be.
func (n *matrixNode) right(from time.Time, allocatable int64) {
	n.t.Helper()
	n.WaitHealthy(n.t, 10*time.Second, n.resource, int(allocatable))
	n.WaitResource(n.t, 10*time.Second, n.resource, bed.Resource{Capacity: n.capacity, Allocatable: allocatable})
	n.took = append(n.took, time.Since(from))
}

// inject runs the fault as often as it must be, with a pod after each, and judges.
func (n *matrixNode) inject(fault func(i int)) {
	n.t.Helper()
	n.come(2) // what is made once is made
	injected := 0
	for i := range injections() {
		fault(i)
		injected++
		n.knowsPods()
		n.come(2)
		n.untouched()
		if i == 0 {
			n.first = n.footprint()
		}
	}
	if injected < injections() {
		n.t.Errorf("the fault was injected %d times, want %d", injected, injections())
	}
	n.judge(injected)
}

// knowsPods waits until the kubelet has heard of its pods. One that was restarted counts the devices
// of pods that are gone as taken until then, and refuses those that come with its first list.
func (n *matrixNode) knowsPods() {
	n.t.Helper()
	bed.Poll(n.t, 10*time.Second, "the kubelet knows its pods", func() error {
		devices := n.PodDevices(n.t)
		for _, pod := range n.keep {
			if len(devices[pod.Name+"/main"]) != 1 {
				return fmt.Errorf("it knows %v", devices)
			}
		}
		return nil
	})
}

func (n *matrixNode) untouched() {
	n.t.Helper()
	for _, before := range n.keep {
		now := n.Get(n.t, before.Name)
		was, is := before.Status.ContainerStatuses[0], now.Status.ContainerStatuses[0]
		if now.UID != before.UID || is.ContainerID != was.ContainerID || is.RestartCount != 0 || now.Status.Phase != v1.PodRunning {
			n.t.Errorf("pod %s was touched: %s, %d restarts", now.Name, now.Status.Phase, is.RestartCount)
		}
	}
}

// A sanitizer keeps what is freed for a while, so that memory grows without a leak, which it would
// itself report.
var sanitized = slices.Contains([]string{"asan", "tsan"}, filepath.Base(os.Getenv("WEFT_BUILD")))

func (n *matrixNode) judge(injected int) {
	n.t.Helper()
	seen := n.failures.Check(n.t)
	problems, handed := n.CRI.Twice(n.t)
	for _, problem := range problems {
		n.t.Error(problem)
	}
	onlyOnce(n.t, n.PodDevices(n.t))
	if seen < injected || handed < injected {
		n.t.Errorf("%d pods were seen and %d devices handed out: too few to judge by", seen, handed)
	}
	last := n.footprint()
	if !n.restarts && (last.fds > n.first.fds+2 || last.threads > n.first.threads || (last.rss > n.first.rss+1<<20 && !sanitized)) {
		n.t.Errorf("the plugin grew: %+v, after the first fault %+v", last, n.first)
	}
	if sockets := ownSockets(n.t, n.PluginDir); len(sockets) != max(1, n.sockets) {
		n.t.Errorf("sockets in the plugin folder: %q", sockets)
	}
	slices.Sort(n.took)
	median, most := n.took[len(n.took)/2], n.took[len(n.took)-1]
	n.t.Logf("injected %d times; %d pods, %d devices handed out; allocatable right after %v (median), %v (most); %+v",
		injected, seen, handed, median.Round(time.Millisecond), most.Round(time.Millisecond), last)
	if median > matrixSoon {
		n.t.Errorf("allocatable was right only %v after it could be (median), want %v", median.Round(time.Millisecond), matrixSoon)
	}
}

// ownSockets are the sockets in the plugin folder beside the kubelet's.
func ownSockets(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var sockets []string
	for _, entry := range entries {
		if entry.Type()&os.ModeSocket != 0 && entry.Name() != "kubelet.sock" {
			sockets = append(sockets, entry.Name())
		}
	}
	return sockets
}

// fileNode is such a node on the machine of four bridged pairs.
func fileNode(t *testing.T, settings ...bed.Setting) (*matrixNode, machine) {
	t.Helper()
	m := pairs8(t)
	n := &matrixNode{Kubelet: bed.StartKubelet(t, bed.Shared(t), settings...), t: t, resource: bed.GPU, capacity: 8}
	m.write(t, machineFile(n.Kubelet))
	n.plugin = bed.StartPlugin(t, n.Kubelet, machineFile(n.Kubelet))
	n.begin()
	return n, m
}

// driverMatrixNode is such a node on the stand-in for NVIDIA's library.
func driverMatrixNode(t *testing.T, fixture, resource string, capacity int64, args ...string) (*matrixNode, *bed.Driver) {
	t.Helper()
	n := &matrixNode{Kubelet: bed.StartKubelet(t, bed.Shared(t)), t: t, resource: resource, capacity: capacity}
	driver := bed.NewDriver(t, n.Kubelet, fixture)
	n.plugin = bed.StartDriverPlugin(t, n.Kubelet, driver, nil, append(slices.Clone(quick), append(args, "--health-flap-count", "0")...)...)
	n.begin()
	return n, driver
}

func TestMatrixKubeletRestart(t *testing.T) {
	t.Parallel()
	n, _ := fileNode(t)
	n.inject(func(i int) {
		n.Stop(t, []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL}[i%2])
		n.Start(t)
		n.right(time.Now(), 8) // from when the node's status comes from this life of the kubelet
	})
}

// The folder is wiped under a running kubelet, all but the kubelet's own socket; and with it, while
// the kubelet is away.
func TestMatrixFolderWiped(t *testing.T) {
	t.Parallel()
	n, _ := fileNode(t)
	n.inject(func(i int) {
		if i%2 == 0 {
			before := n.Registrations(t, n.resource)
			wiped := time.Now()
			wipe(t, n.PluginDir, "kubelet.sock")
			bed.Poll(t, 5*time.Second, "registered again", func() error {
				if n.Registrations(t, n.resource) == before {
					return fmt.Errorf("not yet")
				}
				return nil
			})
			n.right(wiped, 8)
			return
		}
		n.Stop(t, syscall.SIGKILL)
		// The kubelet's checkpoint is what tells it which pod has what: that stays.
		wipe(t, n.PluginDir, "kubelet_internal_checkpoint")
		n.Start(t)
		n.right(time.Now(), 8)
	})
}

// The plugin's socket is another file now: one that nobody listens on, or no socket at all.
func TestMatrixSocketReplaced(t *testing.T) {
	t.Parallel()
	n, _ := fileNode(t)
	n.inject(func(i int) {
		before := n.Registrations(t, n.resource)
		replaced := time.Now()
		for _, name := range ownSockets(t, n.PluginDir) {
			bed.Write(t, filepath.Join(n.PluginDir, name), "not a socket")
		}
		bed.Poll(t, 5*time.Second, "registered again", func() error {
			if n.Registrations(t, n.resource) == before {
				return fmt.Errorf("not yet")
			}
			return nil
		})
		n.right(replaced, 8)
	})
}

// The kubelet hangs while the plugin registers, for as long as it takes to notice.
func TestMatrixSlowRegister(t *testing.T) {
	t.Parallel()
	n, _ := fileNode(t)
	n.inject(func(i int) {
		before := n.Registrations(t, n.resource)
		n.Signal(syscall.SIGSTOP)
		for _, name := range ownSockets(t, n.PluginDir) { // has it register again
			if err := os.Remove(filepath.Join(n.PluginDir, name)); err != nil {
				t.Fatal(err)
			}
		}
		bed.Hold(t, time.Second, "the plugin waits", n.plugin.Check)
		n.Signal(syscall.SIGCONT)
		woken := time.Now()
		bed.Poll(t, 5*time.Second, "registered again", func() error {
			if n.Registrations(t, n.resource) == before {
				return fmt.Errorf("not yet")
			}
			return nil
		})
		n.right(woken, 8)
	})
}

func TestMatrixPluginKilled(t *testing.T) {
	t.Parallel()
	n, _ := fileNode(t)
	n.restarts = true
	n.inject(func(i int) {
		n.plugin.Kill()
		n.WaitHealthy(t, 5*time.Second, n.resource, 0)
		began := time.Now()
		n.plugin = bed.StartPlugin(t, n.Kubelet, machineFile(n.Kubelet))
		n.right(began, 8)
	})
}

// An update with surge: the next plugin is ready beside the old one before that is told to end.
func TestMatrixUpgrade(t *testing.T) {
	t.Parallel()
	n, m := fileNode(t)
	n.restarts = true
	n.inject(func(i int) {
		g := &gpuNode{Kubelet: n.Kubelet, machine: m, plugin: n.plugin}
		before := n.Registrations(t, n.resource)
		next := g.standby(t)
		if now := n.Registrations(t, n.resource); now != before {
			t.Errorf("the standby has registered: %d registrations, before %d", now, before)
		}
		if _, err := n.plugin.End(syscall.SIGTERM, 10*time.Second); err != nil {
			t.Fatal(err)
		}
		ended := time.Now()
		n.plugin = next
		g.registeredAgain(t, before, ended)
		n.right(ended, 8)
	})
}

// The vendor's library hangs: all devices are unhealthy once the time for a call is over, pods
// that are there stay, and all is well when the call is back.
func TestMatrixLibraryHangs(t *testing.T) {
	t.Parallel()
	n, driver := driverMatrixNode(t, "hgx-h100-8.json", bed.GPU, 8)
	n.inject(func(i int) {
		hang := 3 * time.Second
		if long(2) > 1 && i == 0 {
			hang = time.Minute
		}
		driver.Change(t, func() {
			driver.Hang("nvmlDeviceGetCount_v2", int(hang.Milliseconds()))
			driver.Tell(map[string]any{"gpu": 0, "type": 256})
		})
		n.right(time.Now().Add(time.Second), 0) // --driver-timeout 1s
		driver.Change(t, func() { driver.Hang("", 0) })
		n.WaitHealthy(t, hang+10*time.Second, n.resource, 8)
		n.WaitResource(t, 5*time.Second, n.resource, eight)
	})
}

func TestMatrixDeviceLost(t *testing.T) {
	t.Parallel()
	n, driver := driverMatrixNode(t, "hgx-h100-8.json", bed.GPU, 8)
	n.inject(func(i int) {
		driver.Change(t, func() {
			driver.GPU(i % 8)["lost"] = true
			driver.Tell(bed.XID(i%8, 79))
		})
		n.right(time.Now(), 7)
		driver.Change(t, func() { delete(driver.GPU(i%8), "lost") })
		n.right(time.Now().Add(2*time.Second), 8) // --rescan 500ms, --health-recover 1s
	})
}

// MIG instances are made and removed while pods use others of them.
func TestMatrixMIGChange(t *testing.T) {
	t.Parallel()
	n := &matrixNode{Kubelet: bed.StartKubelet(t, bed.Shared(t)), t: t, resource: slices1g, capacity: 6, sockets: 2}
	instance := func(i int) slice {
		return slice{fmt.Sprintf("MIG-0000000%d-0000-0000-0000-000000000000", i), "1g.10gb", 1}
	}
	var all []slice
	for i := range 8 {
		all = append(all, instance(i))
	}
	path := machineFile(n.Kubelet)
	migMachine(t, path, all[:6]...)
	n.plugin = bed.StartPlugin(t, n.Kubelet, path, "--mig-strategy", "mixed")
	n.begin()
	used := onlyOnce(t, n.PodDevices(t))
	n.inject(func(i int) {
		// those in use, and of the others all but one
		now, left := []slice{}, false
		for _, s := range all {
			if !left && !used[s.id] && s.id != all[7-i%2].id {
				left = true
				continue
			}
			now = append(now, s)
		}
		migMachine(t, path, now...)
		n.plugin.Signal(syscall.SIGHUP)
		n.capacity = 7
		n.right(time.Now(), 7)
		migMachine(t, path, all[:6]...)
		kept := 0
		for _, s := range all[:6] {
			if used[s.id] {
				kept++
			}
		}
		if kept != len(used) {
			t.Fatalf("instances in use are not among the first: %v", used)
		}
		n.plugin.Signal(syscall.SIGHUP)
		n.capacity = 6
		n.right(time.Now(), 6)
	})
}

// Pods under single-numa-node, with devices of known node and of none: a device that fails and comes
// back changes nothing in who fits.
func TestMatrixSingleNUMANode(t *testing.T) {
	t.Parallel()
	for name, known := range map[string]bool{"known": true, "unknown": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := pairs8(t)
			devices := m.raw["devices"].([]any)
			for i := range devices {
				device := devices[i].(map[string]any)
				delete(device, "numa_node")
				delete(device, "socket")
				if known {
					device["numa_node"] = i / 4
				}
			}
			n := &matrixNode{Kubelet: bed.StartKubelet(t, bed.Shared(t), bed.NUMA(2, 4),
				bed.Config("topologyManagerPolicy: single-numa-node")), t: t, resource: bed.GPU, capacity: 8}
			m.write(t, machineFile(n.Kubelet))
			n.plugin = bed.StartPlugin(t, n.Kubelet, machineFile(n.Kubelet))
			n.begin()
			used := onlyOnce(t, n.PodDevices(t))
			node, free := map[string]int{}, 0
			for i, d := range m.Devices {
				node[d.ID] = i / 4
				if !used[d.ID] {
					free = i
				}
			}
			n.inject(func(i int) {
				m.write(t, machineFile(n.Kubelet), free)
				n.plugin.Signal(syscall.SIGHUP)
				n.right(time.Now(), 7)
				m.write(t, machineFile(n.Kubelet))
				n.plugin.Signal(syscall.SIGHUP)
				n.right(time.Now(), 8)
				pod := n.Pod(fmt.Sprint("numa", i), bed.GPU, 2)
				pod.Spec.TerminationGracePeriodSeconds = seconds(1)
				n.Run(t, pod)
				ids := visible(t, n.Kubelet, pod.Name)
				if len(ids) != 2 || known && node[ids[0]] != node[ids[1]] {
					t.Errorf("a pod of two got %q", ids)
				}
				n.Leave(t, pod.Name)
			})
		})
	}
}

// Pods with init containers come and go while the kubelet is restarted: the init container's devices
// are used again by the main one, which gets no other pod's.
func TestMatrixInitContainers(t *testing.T) {
	t.Parallel()
	n, _ := fileNode(t)
	n.inject(func(i int) {
		pod := n.Pod(fmt.Sprint("init", i), bed.GPU, 4)
		pod.Spec.TerminationGracePeriodSeconds = seconds(1)
		first := bed.Container("first", bed.GPU, 2)
		first.Command = []string{"exit", "0", "50ms"}
		pod.Spec.InitContainers = []v1.Container{first}
		made := n.Run(t, pod)
		if i%2 == 0 {
			n.Stop(t, syscall.SIGTERM)
			n.Start(t)
			n.right(time.Now(), 8)
			bed.Poll(t, 5*time.Second, "the pod has its four", func() error {
				if got := n.PodDevices(t)[made.Name+"/main"]; len(got) != 4 {
					return fmt.Errorf("%q", got)
				}
				return nil
			})
		} else {
			n.right(time.Now(), 8)
		}
		main := bed.Visible(n.CRI.Config(t, made.Name, "main"))
		for _, id := range bed.Visible(n.CRI.Config(t, made.Name, "first")) {
			if !slices.Contains(main, id) {
				t.Errorf("%s of the init container is not the main one's: %q", id, main)
			}
		}
		n.Leave(t, made.Name)
	})
}
