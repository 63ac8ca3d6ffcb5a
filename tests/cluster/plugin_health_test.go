// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"weft.dev/weft/tests/cluster/bed"
)

// leaving is how long a device that fails may stay allocatable, the kubelet's own second of status
// updates included.
const leaving = 2 * time.Second

// driverNode is a kubelet with weft's plugin on the stand-in for NVIDIA's library.
type driverNode struct {
	*bed.Kubelet
	driver *bed.Driver
	plugin *bed.Process
}

// quick makes the plugin look every half second, and a device wait one second in order.
var quick = []string{"--rescan", "500ms", "--health-recover", "1s", "--health-suspect", "1s", "--driver-timeout", "1s"}

func startDriverNode(t *testing.T, fixture string, env []string, args ...string) *driverNode {
	t.Helper()
	n := &driverNode{Kubelet: bed.StartKubelet(t, bed.Shared(t))}
	n.driver = bed.NewDriver(t, n.Kubelet, fixture)
	n.plugin = bed.StartDriverPlugin(t, n.Kubelet, n.driver, env, append(slices.Clone(quick), args...)...)
	return n
}

// becomes waits until so many of the resource's devices are allocatable, all of them being capacity
// still, and says how long it took.
func (n *driverNode) becomes(t *testing.T, within time.Duration, what, resource string, capacity, allocatable int64) {
	t.Helper()
	began := time.Now()
	n.WaitResource(t, within, resource, bed.Resource{Capacity: capacity, Allocatable: allocatable})
	t.Logf("%s: %d of %d allocatable after %v", what, allocatable, capacity, time.Since(began).Round(10*time.Millisecond))
}

// says waits for a line of the plugin's log with all these parts.
func (n *driverNode) says(t *testing.T, parts ...string) {
	t.Helper()
	bed.Poll(t, 5*time.Second, fmt.Sprintf("the plugin says %q", parts), func() error {
		for _, line := range strings.Split(n.plugin.Output(), "\n") {
			if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) }) {
				return nil
			}
		}
		return fmt.Errorf("its last lines:\n%s", n.plugin.Tail(10))
	})
}

// unharmed checks that the pod still runs as it did.
func (n *driverNode) unharmed(t *testing.T, before *v1.Pod) {
	t.Helper()
	now := n.Get(t, before.Name)
	was, is := before.Status.ContainerStatuses[0], now.Status.ContainerStatuses[0]
	if now.UID != before.UID || is.ContainerID != was.ContainerID || is.RestartCount != 0 || now.Status.Phase != v1.PodRunning {
		t.Errorf("pod %s was touched: %s, %d restarts", now.Name, now.Status.Phase, is.RestartCount)
	}
}

func gpuID(i int) string { return fmt.Sprintf("GPU-%08d-0000-4000-8000-%012d", i, i) }

// A fatal XID takes its GPU away, whether a pod has it or not; it is back when the driver asks for
// nothing any more, without a restart of anything.
func TestHealthXIDFatal(t *testing.T) {
	t.Parallel()
	n := startDriverNode(t, "hgx-h100-8.json", nil)
	n.becomes(t, 5*time.Second, "at first", bed.GPU, 8, 8)
	pod := n.Run(t, n.Pod("before", bed.GPU, 2))
	used := visible(t, n.Kubelet, pod.Name)
	for _, gpu := range []int{5, slices.IndexFunc([]int{0, 1, 2, 3, 4, 5, 6, 7}, func(i int) bool { return gpuID(i) == used[0] })} {
		n.driver.Change(t, func() {
			n.driver.GPU(gpu)["recovery"] = 1
			n.driver.Tell(bed.XID(gpu, 79))
		})
		n.becomes(t, leaving, "after the XID", bed.GPU, 8, 7)
		n.says(t, `"health"`, gpuID(gpu), `"from":"healthy"`, `"to":"unhealthy"`, "XID 79")
		bed.Hold(t, 2*time.Second, "the GPU stays away while the driver wants it reset", func() error {
			if got := n.Resource(t, bed.GPU); got.Allocatable != 7 {
				return fmt.Errorf("%+v", got)
			}
			return n.plugin.Check()
		})
		n.driver.Change(t, func() { n.driver.GPU(gpu)["recovery"] = 0 })
		n.becomes(t, 5*time.Second, "after the reset", bed.GPU, 8, 8)
		n.says(t, `"health"`, gpuID(gpu), `"from":"recovering"`, `"to":"healthy"`)
	}
	n.unharmed(t, pod)
	if got := visible(t, n.Kubelet, n.Run(t, n.Pod("after", bed.GPU, 6)).Name); len(got) != 6 {
		t.Errorf("a pod of the six others got %q", got)
	}
}

// XIDs that programs cause, and those that the site says are none of the GPU's faults, change
// nothing; one that it wants to count although NVIDIA ignores it does.
func TestHealthXIDIgnored(t *testing.T) {
	t.Parallel()
	n := startDriverNode(t, "hgx-h100-8.json", []string{"DP_DISABLE_HEALTHCHECKS=94,48", "DP_ENABLE_HEALTHCHECKS=43"})
	n.becomes(t, 5*time.Second, "at first", bed.GPU, 8, 8)
	n.driver.Change(t, func() {
		for gpu, code := range []int{13, 31, 45, 68, 109, 94, 48} {
			n.driver.Tell(bed.XID(gpu, code))
		}
	})
	n.says(t, "device-notice", gpuID(6), "XID 48")
	bed.Hold(t, 3*time.Second, "all GPUs stay", func() error {
		if got := n.Resource(t, bed.GPU); got != eight {
			return fmt.Errorf("%+v", got)
		}
		return n.plugin.Check()
	})
	n.driver.Change(t, func() {
		n.driver.GPU(7)["recovery"] = 1
		n.driver.Tell(bed.XID(7, 43))
	})
	n.becomes(t, leaving, "after XID 43", bed.GPU, 8, 7)
}

// A GPU that is lost stays capacity, and is back when it answers again; one that the library does
// not even list likewise.
func TestHealthLostAndBack(t *testing.T) {
	t.Parallel()
	n := startDriverNode(t, "hgx-h100-8.json", nil)
	n.becomes(t, 5*time.Second, "at first", bed.GPU, 8, 8)
	pod := n.Run(t, n.Pod("before", bed.GPU, 2))
	n.driver.Change(t, func() {
		n.driver.GPU(3)["lost"] = true
		n.driver.Tell(bed.XID(3, 79))
	})
	n.becomes(t, leaving, "lost, and told", bed.GPU, 8, 7)
	n.driver.Change(t, func() { n.driver.GPU(4)["lost"] = true })
	n.becomes(t, leaving, "another one, without an event", bed.GPU, 8, 6)
	n.driver.Change(t, func() {
		delete(n.driver.GPU(3), "lost")
		delete(n.driver.GPU(4), "lost")
	})
	n.becomes(t, 5*time.Second, "both back", bed.GPU, 8, 8)

	gpus := n.driver.World()["gpus"].([]any)
	n.driver.Change(t, func() { n.driver.World()["gpus"] = gpus[:7] })
	n.plugin.Signal(syscall.SIGHUP)
	n.becomes(t, leaving, "one not listed any more", bed.GPU, 8, 7)
	n.driver.Change(t, func() { n.driver.World()["gpus"] = gpus })
	n.becomes(t, 5*time.Second, "listed again", bed.GPU, 8, 8)
	n.unharmed(t, pod)
}

// A library that hangs makes its devices unhealthy and holds nobody up: not the kubelet's other
// pods, not the running ones, and not the end of the plugin, though the library hangs at that too.
func TestHealthHangAndBack(t *testing.T) {
	t.Parallel()
	n := startDriverNode(t, "hgx-h100-8.json", nil)
	n.becomes(t, 5*time.Second, "at first", bed.GPU, 8, 8)
	pod := n.Run(t, n.Pod("before", bed.GPU, 2))
	changed := map[string]any{"gpu": 0, "type": 256} // has the plugin look
	n.driver.Change(t, func() {
		n.driver.Hang("nvmlDeviceGetCount_v2", 8000)
		n.driver.Tell(changed)
	})
	n.becomes(t, time.Second+leaving, "hanging", bed.GPU, 8, 0)
	n.driver.Change(t, func() { n.driver.Hang("", 0) })
	n.Run(t, n.Pod("plain", "", 0))
	n.becomes(t, 15*time.Second, "back", bed.GPU, 8, 8)
	n.Run(t, n.Pod("after", bed.GPU, 2))
	n.unharmed(t, pod)

	n.driver.Change(t, func() {
		n.driver.World()["hang_ms"] = map[string]any{"nvmlDeviceGetCount_v2": 60000, "exit": 60000}
		n.driver.Tell(changed)
	})
	n.becomes(t, time.Second+leaving, "hanging for a minute", bed.GPU, 8, 0)
	n.Run(t, n.Pod("plain-too", "", 0))
	began := time.Now()
	code, err := n.plugin.End(syscall.SIGTERM, 10*time.Second)
	if took := time.Since(began); err != nil || code != 0 || took > 5*time.Second {
		t.Errorf("the plugin ended with %d (%v) after %v", code, err, took)
	} else {
		t.Logf("the plugin ended after %v", took.Round(time.Millisecond))
	}
	n.unharmed(t, pod)
}

// An XID of one MIG instance takes all ids of that instance away, and nothing else; one of the
// whole GPU takes every instance of that GPU.
func TestHealthMIGInstance(t *testing.T) {
	t.Parallel()
	k := bed.StartKubelet(t, bed.Shared(t))
	n := &driverNode{Kubelet: k, driver: bed.NewDriver(t, k, "mig-mixed.json")}
	const smalls, bigs = "nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb"
	config := filepath.Join(k.Dir, "config.yaml.weft")
	bed.Write(t, config, `version: v1
sharing:
  timeSlicing:
    resources:
    - {name: nvidia.com/mig-1g.10gb, replicas: 3}
`)
	n.driver.Change(t, func() { delete(n.driver.Every(), "recovery") }) // a driver before 560
	n.plugin = bed.StartDriverPlugin(t, k, n.driver, nil,
		append(slices.Clone(quick), "--mig-strategy", "mixed", "--config", config)...)
	n.becomes(t, 5*time.Second, "at first", smalls, 6, 6)
	n.becomes(t, 5*time.Second, "at first", bigs, 1, 1)
	n.becomes(t, 5*time.Second, "at first", bed.GPU, 1, 1)
	pod := n.Run(t, n.Pod("before", smalls, 1))
	others := func() error {
		if big, whole := n.Resource(t, bigs), n.Resource(t, bed.GPU); big.Allocatable != 1 || whole.Allocatable != 1 {
			return fmt.Errorf("the large instance %+v, the other GPU %+v", big, whole)
		}
		return n.plugin.Check()
	}

	event := bed.XID(0, 95)
	event["gi"], event["ci"] = 9, 0
	n.driver.Change(t, func() { n.driver.Tell(event) })
	n.becomes(t, leaving, "an XID of one instance", smalls, 6, 3)
	bed.Hold(t, 3*time.Second, "the others stay", others)
	n.driver.Change(t, func() { n.driver.GPU(0)["life"] = 1 })
	n.becomes(t, 5*time.Second, "after a reset", smalls, 6, 6)

	n.driver.Change(t, func() { n.driver.Tell(bed.XID(0, 79)) })
	n.becomes(t, leaving, "an XID of the whole GPU", smalls, 6, 0)
	n.becomes(t, leaving, "an XID of the whole GPU", bigs, 1, 0)
	n.becomes(t, leaving, "an XID of the whole GPU", bed.GPU, 1, 1)
	n.driver.Change(t, func() { n.driver.GPU(0)["life"] = 2 })
	n.becomes(t, 5*time.Second, "after a reset", smalls, 6, 6)
	n.becomes(t, 5*time.Second, "after a reset", bigs, 1, 1)
	n.unharmed(t, pod)
}

// page is one of the plugin's own, which was started with --listen 127.0.0.1:0.
func (n *driverNode) page(t *testing.T, path string) string {
	t.Helper()
	var port string
	bed.Poll(t, 5*time.Second, "the port", func() error {
		found := regexp.MustCompile(`"event":"listening".*"port":(\d+)`).FindStringSubmatch(n.plugin.Output())
		if found == nil {
			return fmt.Errorf("the plugin does not say where it listens:\n%s", n.plugin.Tail(5))
		}
		port = found[1]
		return nil
	})
	answer, err := http.Get("http://127.0.0.1:" + port + path)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// vendorCalls is how many calls into the driver's library the plugin has made.
func (n *driverNode) vendorCalls(t *testing.T) (total int) {
	t.Helper()
	for _, line := range strings.Split(n.page(t, "/metrics"), "\n") {
		var count int
		if i := strings.LastIndexByte(line, ' '); strings.HasPrefix(line, "weft_plugin_vendor_calls_total{") {
			if _, err := fmt.Sscan(line[i+1:], &count); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			total += count
		}
	}
	return total
}

// What the pages say of health, and that requests of the kubelet make no call into the driver.
func TestHealthPages(t *testing.T) {
	t.Parallel()
	n := &driverNode{Kubelet: bed.StartKubelet(t, bed.Shared(t))}
	n.driver = bed.NewDriver(t, n.Kubelet, "hgx-h100-8.json")
	n.plugin = bed.StartDriverPlugin(t, n.Kubelet, n.driver, nil, "--listen", "127.0.0.1:0", "--rescan", "1h",
		"--health-recover", "1h", "--health-suspect", "1h")
	n.becomes(t, 5*time.Second, "at first", bed.GPU, 8, 8)
	before := n.vendorCalls(t)
	if before == 0 {
		t.Error("no calls into the driver are counted")
	}
	for i := range 4 {
		n.Run(t, n.Pod(fmt.Sprint("pod", i), bed.GPU, 2))
	}
	if after := n.vendorCalls(t); after != before {
		t.Errorf("four pods cost %d calls into the driver", after-before)
	}

	n.driver.Change(t, func() {
		n.driver.Tell(bed.XID(2, 31))
		n.driver.Tell(bed.XID(6, 79))
	})
	n.becomes(t, leaving, "after the XID", bed.GPU, 8, 7)
	machine := n.page(t, "/debug/machine")
	if !strings.Contains(machine, `"healthy": false`) || !strings.Contains(machine, "XID 79: GPU has fallen off the bus") {
		t.Errorf("/debug/machine does not show the fault:\n%.2000s", machine)
	}
	metrics := n.page(t, "/metrics")
	for _, want := range []string{
		`weft_plugin_health_transitions_total{to="unhealthy",reason="event"} 1`,
		`weft_plugin_device_errors_total{code="31",counts="false"} 1`,
		`weft_plugin_device_errors_total{code="79",counts="true"} 1`,
		`weft_plugin_devices_by_state{state="healthy"} 7`,
		`weft_plugin_devices_by_state{state="unhealthy"} 1`,
		`weft_plugin_vendor_calls_total{call="nvmlInit"} 1`,
	} {
		if !strings.Contains(metrics, "\n"+want+"\n") {
			t.Errorf("/metrics lacks %q:\n%s", want, metrics)
		}
	}
}
