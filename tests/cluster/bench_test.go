// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"weft.dev/weft/tests/cluster/bed"
)

// The controller's figures on a large cluster, against a real API server and etcd. `make bench` runs
// them and prints what they write to the file $WEFT_BENCH, "name value unit" a line. The shape of
// the cluster is that of the measurements of Volcano's own controller that hack/bench compares with:
// 32 nodes a leaf, 16 leaves a spine, one core, so that 10,000 nodes have 313 + 20 + 1 HyperNodes.
// Labels on nodes are off: they are limited to 20 a second on purpose. What is counted (writes) is a
// test; what depends on the machine (times, memory) is a figure.

var benchKeys = []string{"bench.example/leaf", "bench.example/spine", "bench.example/core"}

const benchConfig = `apiVersion: weft.dev/v1alpha1
kind: ControllerConfig
nodeSelector: "nvidia.com/gpu.present=true"
tiers: [leaf, spine, core]
sources:
- labels: {keys: [bench.example/leaf, bench.example/spine, bench.example/core]}
outputs: {labels: false}
`

// benchQuiet is debounce.quiet of a configuration that does not name it.
const benchQuiet = time.Second

const relabels = 5

// bench is one measured cluster.
type bench struct {
	name   string
	count  int
	cp     *bed.ControlPlane
	client *kubernetes.Clientset
	out    *os.File
}

func TestBenchController(t *testing.T) {
	b := newBench(t, "controller_10k", 10000, fullNode, bed.NewControlPlane)
	b.lists(t)
	c := b.coldStart(t, 313+20+1)
	b.relabel(t)
	b.restart(t, c)
	b.heartBeats(t, c, 2000)
	b.labelsVanish(t, c)
}

func TestBenchControllerLarge(t *testing.T) {
	if os.Getenv("WEFT_BENCH_LARGE") == "" {
		t.Skip("100,000 nodes take five minutes: WEFT_BENCH_LARGE=1")
	}
	b := newBench(t, "controller_100k", 100000, smallNode, bed.NewLeanControlPlane)
	c := b.coldStart(t, 3125+196+1)
	b.relabel(t)
	b.restart(t, c)
}

func newBench(t *testing.T, name string, count int, node func(int) *v1.Node, plane func(testing.TB) *bed.ControlPlane) *bench {
	t.Helper()
	path := os.Getenv("WEFT_BENCH")
	if path == "" {
		t.Skip("a benchmark: make bench runs it")
	}
	out, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = out.Close() })
	bed.Program(t, "weft-controller")
	cp := plane(t)
	cp.InstallController(t)
	cp.InstallHyperNodes(t, false)
	b := &bench{name: name, count: count, cp: cp, client: cp.Bulk(t), out: out}
	b.each(t, count, 16, func(ctx context.Context, i int) error {
		_, err := b.client.CoreV1().Nodes().Create(ctx, node(i), metav1.CreateOptions{})
		return err
	})
	sample, err := cp.Client.CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes/node-00000").DoRaw(bed.Context(t))
	if err != nil {
		t.Fatal(err)
	}
	b.figure(t, "node_json", float64(len(sample)), "bytes")
	return b
}

// figure writes one line.
func (b *bench) figure(t *testing.T, what string, value float64, unit string) {
	t.Helper()
	line := fmt.Sprintf("%s_%s %.6g %s\n", b.name, what, value, unit)
	if _, err := b.out.WriteString(line); err != nil {
		t.Fatal(err)
	}
	t.Log(strings.TrimSpace(line))
}

func megabytes(bytes int64) float64 { return float64(bytes) / 1e6 }

// each runs do for 0 to count - 1 by many at once.
func (b *bench) each(t *testing.T, count, workers int, do func(context.Context, int) error) {
	t.Helper()
	ctx := bed.Context(t)
	var next atomic.Int64
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < count && !t.Failed(); i = int(next.Add(1)) - 1 {
				if err := do(ctx, i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// ---- nodes ----

func smallNode(i int) *v1.Node {
	leaf := i / 32
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%05d", i), Labels: map[string]string{
		"nvidia.com/gpu.present": "true",
		benchKeys[0]:             fmt.Sprintf("leaf-%04d", leaf),
		benchKeys[1]:             fmt.Sprintf("spine-%03d", leaf/16),
		benchKeys[2]:             "core-0",
	}}}
}

// fullNode is a node as a kubelet and the usual add-ons leave it: 16 KB of JSON, 6 KB of that
// metadata.
func fullNode(i int) *v1.Node {
	node := smallNode(i)
	for k := range 24 {
		node.Labels[fmt.Sprintf("feature.node.example/some-property-%02d", k)] = fmt.Sprint("value-", k)
	}
	node.Labels["kubernetes.io/hostname"] = node.Name
	node.Annotations = map[string]string{"example.com/facts-of-this-node": strings.Repeat("a fact; ", 130)}
	for k := range 5 {
		node.Annotations[fmt.Sprint("example.com/note-", k)] = fmt.Sprintf("%d-%s", i, strings.Repeat("x", 60))
	}
	node.Status.Capacity = v1.ResourceList{"cpu": resource.MustParse("192"), "memory": resource.MustParse("2Ti"),
		"nvidia.com/gpu": resource.MustParse("8")}
	node.Status.Conditions = conditions(0)
	for k := range 54 {
		node.Status.Images = append(node.Status.Images, v1.ContainerImage{SizeBytes: int64(k) << 20, Names: []string{
			fmt.Sprintf("registry.example/team/some-image-%02d@sha256:%064x", k, k),
			fmt.Sprintf("registry.example/team/some-image-%02d:v1.%d", k, k)}})
	}
	return node
}

func conditions(beat int) []v1.NodeCondition {
	var all []v1.NodeCondition
	for _, kind := range []v1.NodeConditionType{"MemoryPressure", "DiskPressure", "PIDPressure", "Ready"} {
		all = append(all, v1.NodeCondition{Type: kind, Status: "False", Reason: "KubeletHasSufficient", Message: "kubelet is as it should be",
			LastHeartbeatTime: metav1.NewTime(time.Unix(1800000000+int64(beat), 0))})
	}
	return all
}

// ---- what is measured ----

// hyperNodeWrites are those since mark, the refused ones too.
func (b *bench) hyperNodeWrites(t *testing.T, mark bed.Mark) []bed.Event {
	return b.cp.Audit.Since(t, mark, bed.HyperNodeWrites(bed.ControllerUser))
}

// written waits until count HyperNode writes came after mark and then for a while without more.
func (b *bench) written(t *testing.T, mark bed.Mark, count int) []bed.Event {
	t.Helper()
	var events []bed.Event
	follow := func() {
		var fresh []bed.Event
		fresh, mark = b.cp.Audit.Follow(t, mark, bed.HyperNodeWrites(bed.ControllerUser))
		events = append(events, fresh...)
	}
	bed.Poll(t, 5*time.Minute, "the HyperNodes", func() error {
		if follow(); len(events) < count {
			return fmt.Errorf("%d HyperNode writes, want %d", len(events), count)
		}
		return nil
	})
	time.Sleep(3 * time.Second)
	follow()
	for _, e := range events {
		if !e.OK() {
			t.Errorf("refused: %v", e)
		}
	}
	return events
}

// still checks that the controller writes nothing but its Lease and events.
func (b *bench) still(t *testing.T, mark bed.Mark, what string) {
	t.Helper()
	events := b.cp.Audit.Since(t, mark, func(e bed.Event) bool {
		return bed.Writes(bed.ControllerUser)(e) && e.Object.Resource != "events"
	})
	b.figure(t, what+"_writes", float64(len(events)), "writes")
	if len(events) > 0 {
		t.Errorf("%s: %d writes: %v", what, len(events), events[0])
	}
}

func loadNow() string {
	text, _ := os.ReadFile("/proc/loadavg")
	return strings.Join(strings.Fields(string(text))[:1], "")
}

func (b *bench) coldStart(t *testing.T, want int) *bed.Controller {
	t.Helper()
	mark, server, load := b.cp.Audit.Mark(t), b.cp.Server().Usage(t), loadNow()
	start := time.Now()
	c := bed.StartController(t, b.cp, benchConfig, "--listen", "127.0.0.1:0")
	events := b.written(t, mark, want)
	usage, after := c.Usage(t), b.cp.Server().Usage(t)
	last := events[len(events)-1].Time
	b.figure(t, "cold_start", last.Sub(start).Seconds(), "s")
	b.figure(t, "cold_start_writes", float64(len(events)), "writes")
	b.figure(t, "cold_start_cpu", usage.CPU.Seconds(), "s")
	b.figure(t, "cold_start_server_cpu", (after.CPU - server.CPU).Seconds(), "s")
	b.figure(t, "rss", megabytes(usage.RSS), "MB")
	b.figure(t, "rss_peak", megabytes(usage.PeakRSS), "MB")
	b.figure(t, "server_rss", megabytes(after.RSS), "MB")
	b.phases(t, c, start, events)
	t.Logf("load average %s before the start", load)
	names := map[string]bool{}
	for _, e := range events {
		names[e.Name()] = true
	}
	if len(events) != want || len(names) != want {
		t.Errorf("%d writes of %d HyperNodes, want one of each of %d", len(events), len(names), want)
	}
	return c
}

// phases says where the time of a cold start went: from the controller's log and the audit log.
func (b *bench) phases(t *testing.T, c *bed.Controller, start time.Time, events []bed.Event) {
	t.Helper()
	at := func(event string) (time.Time, bool) {
		found := regexp.MustCompile(`time=(\S+) .*event="?`+event).FindAllStringSubmatch(c.Output(), -1)
		if len(found) == 0 {
			return time.Time{}, false
		}
		when, err := time.Parse(time.RFC3339Nano, found[len(found)-1][1])
		return when, err == nil
	}
	for _, phase := range []struct{ name, event string }{{"started", "started"}, {"leads", "leading"},
		{"nodes_listed", "nodes listed"}} {
		if when, ok := at(phase.event); ok {
			b.figure(t, "phase_"+phase.name, float64(when.Sub(start).Milliseconds()), "ms")
		}
	}
	b.figure(t, "phase_first_write", float64(events[0].Received.Sub(start).Milliseconds()), "ms")
	b.figure(t, "phase_last_write", float64(events[len(events)-1].Time.Sub(start).Milliseconds()), "ms")
}

// relabel moves one node to the next leaf, and on, and says how long after the change the second
// write was done, less the debounce. Both times are the server's.
func (b *bench) relabel(t *testing.T) {
	t.Helper()
	var after []float64
	writes := 0
	for leaf := range relabels {
		mark := b.cp.Audit.Mark(t)
		b.patch(t, 5, map[string]string{benchKeys[0]: fmt.Sprintf("leaf-%04d", leaf+1)})
		events := b.written(t, mark, 2)
		writes += len(events)
		if len(events) != 2 {
			t.Errorf("%d writes for a moved node, want 2", len(events))
		}
		changes := b.cp.Audit.Since(t, mark, func(e bed.Event) bool { return e.Verb == "patch" && e.Name() == "node-00005" })
		if len(changes) != 1 {
			t.Fatalf("%d patches of the node: %v", len(changes), changes)
		}
		took := events[len(events)-1].Time.Sub(changes[0].Time) - benchQuiet
		after = append(after, float64(took.Microseconds())/1000)
	}
	slices.Sort(after)
	b.figure(t, "relabel_writes", float64(writes)/relabels, "writes")
	b.figure(t, "relabel_after_debounce", after[len(after)/2], "ms")
	b.figure(t, "relabel_after_debounce_worst", after[len(after)-1], "ms")
}

func (b *bench) patch(t *testing.T, i int, labels map[string]string) {
	t.Helper()
	patch(t, b.cp, fmt.Sprintf("node-%05d", i), map[string]any{"metadata": map[string]any{"labels": labels}})
}

// restart stops the controller in order and starts it again.
func (b *bench) restart(t *testing.T, c *bed.Controller) {
	t.Helper()
	c.Stop(t)
	mark, start := b.cp.Audit.Mark(t), time.Now()
	lines := len(c.Output())
	c.Restart(t)
	for b.ready(c, lines) != nil && time.Since(start) < 2*time.Minute {
		time.Sleep(5 * time.Millisecond)
	}
	b.figure(t, "restart_ready", time.Since(start).Seconds(), "s")
	time.Sleep(5 * time.Second)
	b.figure(t, "restart_cpu", c.Usage(t).CPU.Seconds(), "s")
	b.still(t, mark, "restart")
}

// ready asks the controller that has logged since lines.
func (b *bench) ready(c *bed.Controller, lines int) error {
	found := regexp.MustCompile(`event=listening .* port=(\d+)`).FindStringSubmatch(c.Output()[lines:])
	if found == nil {
		return fmt.Errorf("does not listen yet")
	}
	answer, err := http.Get("http://127.0.0.1:" + found[1] + "/readyz")
	if err != nil {
		return err
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", answer.StatusCode)
	}
	return nil
}

// heartBeats is a minute of what kubelets write when nothing happens: each its status every five
// minutes.
func (b *bench) heartBeats(t *testing.T, c *bed.Controller, beats int) {
	t.Helper()
	mark, before, start := b.cp.Audit.Mark(t), c.Usage(t), time.Now()
	for i := range beats {
		time.Sleep(time.Until(start.Add(time.Minute * time.Duration(i) / time.Duration(beats))))
		patch(t, b.cp, fmt.Sprintf("node-%05d", i), map[string]any{"status": map[string]any{"conditions": conditions(i + 1)}}, "status")
	}
	used := c.Usage(t).CPU - before.CPU
	b.figure(t, "heartbeats_cpu_per_minute", used.Seconds()*60/time.Since(start).Seconds(), "s")
	b.still(t, mark, "heartbeats")
}

// labelsVanish takes the topology labels off all nodes: somebody's agent has gone mad. Nothing may
// be deleted for it.
func (b *bench) labelsVanish(t *testing.T, c *bed.Controller) {
	t.Helper()
	mark := b.cp.Audit.Mark(t)
	change := fmt.Appendf(nil, `{"metadata":{"labels":{%q:null,%q:null,%q:null}}}`, benchKeys[0], benchKeys[1], benchKeys[2])
	b.each(t, b.count, 16, func(ctx context.Context, i int) error {
		_, err := b.client.CoreV1().Nodes().Patch(ctx, fmt.Sprintf("node-%05d", i), types.MergePatchType, change, metav1.PatchOptions{})
		return err
	})
	time.Sleep(15 * time.Second)
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	deletes := 0
	for _, e := range b.hyperNodeWrites(t, mark) {
		if e.Verb == "delete" {
			deletes++
		}
	}
	b.figure(t, "labels_vanish_deletes", float64(deletes), "deletes")
	b.still(t, mark, "labels_vanish")
	if deletes > 0 {
		t.Errorf("%d HyperNodes were deleted because labels vanished", deletes)
	}
}

// lists compares the ways to read all nodes: as a stream, in pages, and as one answer.
func (b *bench) lists(t *testing.T) {
	t.Helper()
	k := newKubetool(t, b.cp)
	for _, way := range []struct{ name, pageSize string }{{"stream", "0"}, {"pages", "500"}, {"whole", "1000000"}} {
		server := b.cp.Server().Usage(t)
		p := k.start(t, "follow", "/api/v1/nodes", "metadata", "600", way.pageSize)
		bed.Poll(t, time.Minute, "synced", has(p, fmt.Sprintf("synced objects=%d ", b.count)))
		got := fields(p.Output()[strings.Index(p.Output(), "synced"):])
		p.Kill()
		for _, figure := range []struct{ name, unit string }{{"seconds", "s"}, {"cpu", "s"}} {
			value, err := strconv.ParseFloat(got[figure.name], 64)
			if err != nil {
				t.Fatal(err)
			}
			b.figure(t, "list_"+way.name+"_"+figure.name, value, figure.unit)
		}
		b.figure(t, "list_"+way.name+"_server_cpu", (b.cp.Server().Usage(t).CPU - server.CPU).Seconds(), "s")
	}
}
