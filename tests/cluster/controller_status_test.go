// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"weft.dev/weft/tests/cluster/bed"
)

// status is what a test looks at in the ConfigMap weft-status.
type status struct {
	HyperNodesServed bool
	Nodes            struct{ Selected, Placed, Unplaced int }
	Tiers            []struct {
		Tier       int
		Name       string
		HyperNodes int
	}
	Sources []struct {
		Name, State, Error string
		PlacedNodes        int
	}
	RefusedChanges []struct{ Hash, Kind, Text string }
	FindingCount   int
	Findings       []struct{ Kind, Subject, Detail string }
}

func (s status) kinds() []string {
	var kinds []string
	for _, f := range s.Findings {
		kinds = append(kinds, f.Kind)
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

func readStatus(t *testing.T, cp *bed.ControlPlane) (status, error) {
	t.Helper()
	object, err := cp.Client.CoreV1().ConfigMaps(bed.Namespace).Get(bed.Context(t), "weft-status", metav1.GetOptions{})
	if err != nil {
		return status{}, err
	}
	var s status
	if err := json.Unmarshal([]byte(object.Data["status.json"]), &s); err != nil {
		t.Fatalf("status.json: %v", err)
	}
	return s, nil
}

// statusSays waits until the status says what is wanted.
func statusSays(t *testing.T, cp *bed.ControlPlane, what string, wanted func(status) bool) status {
	t.Helper()
	var s status
	bed.Poll(t, 25*time.Second, what, func() error { // a change of the status is at most ten seconds late
		var err error
		if s, err = readStatus(t, cp); err == nil && !wanted(s) {
			err = fmt.Errorf("the status is %+v", s)
		}
		return err
	})
	return s
}

// weftctl runs a verb of weftctl as admin, which must end with that exit status.
func (f *fleet) weftctl(t *testing.T, verb string, status int) string {
	t.Helper()
	kubeconfig := f.cp.Kubeconfig(t, filepath.Join(bed.Dir(t), "kubeconfig"), "admin", "system:masters")
	command := exec.CommandContext(bed.Context(t), bed.Program(t, "weftctl"), verb, "--kubeconfig", kubeconfig)
	out, err := command.CombinedOutput()
	if command.ProcessState == nil || command.ProcessState.ExitCode() != status {
		t.Errorf("weftctl %s: %v, want exit status %d:\n%s", verb, err, status, out)
	}
	return string(out)
}

func statusWrites(t *testing.T, cp *bed.ControlPlane, mark bed.Mark) []bed.Event {
	t.Helper()
	return cp.Audit.Since(t, mark, bed.WritesOf(bed.ControllerUser, "configmaps"))
}

// The status is written once, after the HyperNodes, and not again by heart-beats, by Volcano's
// controller that counts nodes, by a second replica or by a restart; a change in the world is one
// write.
func TestControllerStatus(t *testing.T) {
	t.Parallel()
	f := newCluster(t, 64)
	all := []*bed.Controller{bed.StartController(t, f.cp, quickConfig), bed.StartController(t, f.cp, quickConfig)}
	f.wait(t, 15*time.Second)
	s := statusSays(t, f.cp, "the status", func(s status) bool { return s.Nodes.Placed == 64 })
	if s.Nodes.Selected != 64 || s.Nodes.Unplaced != 0 || !s.HyperNodesServed || s.FindingCount != 0 || len(s.RefusedChanges) != 0 {
		t.Errorf("the status is %+v", s)
	}
	// the forest of 64 nodes: eight leaves, four spines, two cores
	if len(s.Tiers) != 3 || s.Tiers[0].HyperNodes != 8 || s.Tiers[1].HyperNodes != 4 || s.Tiers[2].HyperNodes != 2 || s.Tiers[1].Name != "spine" {
		t.Errorf("the tiers are %+v", s.Tiers)
	}
	if len(s.Sources) != 1 || s.Sources[0].State != "ok" || s.Sources[0].PlacedNodes != 64 {
		t.Errorf("the sources are %+v", s.Sources)
	}
	writes := f.cp.Audit.Since(t, 0, func(e bed.Event) bool {
		return e.User.Username == bed.ControllerUser && (e.Object.Resource == "hypernodes" || e.Object.Resource == "configmaps")
	})
	if n := len(writes); n != 14+1 || writes[n-1].Object.Resource != "configmaps" || writes[n-1].Verb != "create" {
		t.Errorf("the writes are not fourteen HyperNodes and then the status: %v", writes)
	}

	shown := f.weftctl(t, "status", 0)
	for _, line := range []string{"Nodes: 64 selected, 64 placed,", "2     spine                4\n", "source labels: ok, decides 64 Nodes\n", "findings: 0\n"} {
		if !strings.Contains(shown, line) {
			t.Errorf("weftctl status lacks %q:\n%s", line, shown)
		}
	}

	mark := f.cp.Audit.Mark(t)
	stop, beats := make(chan struct{}), make(chan int)
	go func() { beats <- f.heartBeat(t, stop) }()
	countNodes(t, f.cp)
	bed.Hold(t, 12*time.Second, "no write but the Lease", func() error {
		events := append(statusWrites(t, f.cp, mark), f.cp.Audit.Since(t, mark, bed.Writes(bed.ControllerUser))...)
		if events = append(events, f.cp.Audit.Since(t, mark, bed.WritesOf(bed.ControllerUser, "events"))...); len(events) > 0 {
			return fmt.Errorf("%v", events)
		}
		return nil
	})
	close(stop)
	if n := <-beats; n < 100 {
		t.Errorf("only %d heart-beats", n)
	}

	for _, c := range all { // whoever leads then, and both new
		c.Stop(t)
		c.Restart(t)
	}
	bed.Poll(t, 20*time.Second, "a new leader", func() error {
		if f.leaseHolder(t) == "" {
			return fmt.Errorf("nobody holds the Lease")
		}
		return nil
	})
	bed.Hold(t, 12*time.Second, "no write of the status after the restart", func() error {
		if events := statusWrites(t, f.cp, mark); len(events) > 0 {
			return fmt.Errorf("%v", events)
		}
		return nil
	})

	f.add(t, "gpu-lost", map[string]string{gpuLabel: "true"})
	statusSays(t, f.cp, "the new node", func(s status) bool { return s.Nodes.Unplaced == 1 && slices.Equal(s.kinds(), []string{"unplaced"}) })
	if shown = f.weftctl(t, "status", 1); !strings.Contains(shown, "\n  unplaced  gpu-lost: no source knows the node") {
		t.Errorf("weftctl status:\n%s", shown)
	}
	if events := statusWrites(t, f.cp, mark); len(events) != 1 || events[0].Verb != "update" || !events[0].OK() {
		t.Errorf("the writes of the status for one change: %v", events)
	}
}

// countNodes is what Volcano's own controller does to every HyperNode, ours too.
func countNodes(t *testing.T, cp *bed.ControlPlane) {
	t.Helper()
	resource := schema.GroupVersionResource{Group: "topology.volcano.sh", Version: "v1alpha1", Resource: "hypernodes"}
	for name, hn := range cp.HyperNodes(t) {
		text := fmt.Appendf(nil, `{"status":{"nodeCount":%d}}`, len(hn.Members))
		if _, err := cp.Dynamic.Resource(resource).Patch(bed.Context(t), name, types.MergePatchType, text, metav1.PatchOptions{}, "status"); err != nil {
			t.Fatal(err)
		}
	}
}

// A ConfigMap that somebody deletes or writes is put right with the next change; a namespace where
// the controller may not write one stops nothing.
func TestControllerStatusUndone(t *testing.T) {
	t.Parallel()
	f := newCluster(t, 16)
	ctx, maps := bed.Context(t), f.cp.Client.CoreV1().ConfigMaps(bed.Namespace)
	c := bed.StartController(t, f.cp, quickConfig)
	f.wait(t, 15*time.Second)
	statusSays(t, f.cp, "the status", func(s status) bool { return s.Nodes.Placed == 16 })
	if err := maps.Delete(ctx, "weft-status", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.add(t, "gpu-new", awsPlace(2))
	statusSays(t, f.cp, "the status after it was deleted", func(s status) bool { return s.Nodes.Placed == 17 })

	role := f.cp.Client.RbacV1().Roles(bed.Namespace)
	rights, err := role.Get(ctx, "weft-controller", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	rules := rights.Rules[:0]
	for _, rule := range rights.Rules {
		if !slices.Contains(rule.Resources, "configmaps") {
			rules = append(rules, rule)
		}
	}
	rights.Rules = rules
	if _, err := role.Update(ctx, rights, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.change(t, func() { f.add(t, "gpu-more", awsPlace(7)) })
	bed.Poll(t, 20*time.Second, "the controller says why", func() error {
		if !strings.Contains(c.Output(), `event="status not written" configmap=weft-status`) {
			return fmt.Errorf("%s", c.Tail(5))
		}
		return nil
	})
	f.change(t, func() { f.relabel(t, "gpu-000", awsPlace(0)) })
}

// Findings about ever more nodes: they come as events.k8s.io/v1 on the nodes, no faster than ten a
// second, and none twice.
func TestControllerEvents(t *testing.T) {
	t.Parallel()
	f := newCluster(t, 64)
	bed.StartController(t, f.cp, freeConfig)
	f.wait(t, 15*time.Second)
	const rounds, each = 12, 10
	mark := f.cp.Audit.Mark(t)
	for round := range rounds {
		for i := range each {
			createNode(t, f.cp, fmt.Sprintf("odd-%02d-%d", round, i), map[string]string{gpuLabel: "true"})
		}
		time.Sleep(700 * time.Millisecond) // a pass sees them
		for i := range each {
			name := fmt.Sprintf("odd-%02d-%d", round, i)
			f.nodes[name] = map[string]string{gpuLabel: "true"}
			f.relabel(t, name, awsPlace(i%8))
		}
		time.Sleep(300 * time.Millisecond)
	}
	f.wait(t, 30*time.Second)
	sent := func() []bed.Event { return f.cp.Audit.Since(t, mark, bed.WritesOf(bed.ControllerUser, "events")) }
	bed.Poll(t, 40*time.Second, "the queue runs empty", func() error {
		before := len(sent())
		time.Sleep(2 * time.Second)
		if now := len(sent()); now != before || now < rounds*each/2 {
			return fmt.Errorf("%d events, then %d", before, now)
		}
		return nil
	})
	events, seen, places := sent(), map[string]bool{}, map[string]int{}
	for i, e := range events {
		if !strings.HasPrefix(e.URI, "/apis/events.k8s.io/v1/") || !e.OK() || seen[e.Name()] {
			t.Errorf("event %d: %v %s", i, e, e.URI)
		}
		seen[e.Name()] = true
		places[e.Object.Namespace]++
		// over three seconds: how long a busy server lets a single request wait does not count
		if i >= 30 && e.Received.Sub(events[i-30].Received) < 3*time.Second {
			t.Errorf("31 events in %v", e.Received.Sub(events[i-30].Received))
		}
	}
	list, err := f.cp.Client.EventsV1().Events("default").List(bed.Context(t), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != places["default"] || len(list.Items) != rounds*each {
		t.Errorf("events were written in %v, and %d are there for %d nodes", places, len(list.Items), rounds*each)
	}
	// the source's own account of these nodes, in other words each time: five in a row, then one a minute
	if n := places[bed.Namespace]; n < 1 || n > 6 {
		t.Errorf("%d events about the controller", n)
	}
	for _, e := range list.Items {
		if e.Reason != "Unplaced" || e.Regarding.Kind != "Node" || !strings.HasPrefix(e.Regarding.Name, "odd-") ||
			e.ReportingController != "weft.dev/controller" || e.Type != "Warning" {
			t.Errorf("event %+v", e)
		}
	}
}

// What a Prometheus operator's linter says of /metrics: nothing.
func TestControllerMetrics(t *testing.T) {
	t.Parallel()
	f := newCluster(t, 16)
	createNode(t, f.cp, "odd", map[string]string{gpuLabel: "true"})
	c := bed.StartController(t, f.cp, quickConfig, "--listen", "127.0.0.1:0")
	f.wait(t, 15*time.Second)
	statusSays(t, f.cp, "the status", func(s status) bool { return s.Nodes.Unplaced == 1 })
	_, text := page(t, c, "/metrics")
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	for _, line := range []string{`weft_findings{kind="unplaced"} 2`, `weft_status_writes_total 1`, `weft_source_state{source="labels",state="ok"} 1`,
		`weft_events_total{outcome="overflow"} 0`} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("/metrics lacks %q:\n%s", line, text)
		}
	}
}

// /debug/tree is one JSON document that holds the HyperNodes of the API server and every node's place.
func TestControllerDebugTree(t *testing.T) {
	t.Parallel()
	f := newCluster(t, 64)
	c := bed.StartController(t, f.cp, quickConfig, "--listen", "127.0.0.1:0")
	f.wait(t, 15*time.Second)
	bed.Poll(t, 10*time.Second, "the tree", func() error { // its own writes are known to it a moment later
		code, text := page(t, c, "/debug/tree")
		var tree struct {
			Role       string
			Consistent bool
			Status     status
			HyperNodes []struct {
				Name    string
				Tier    int64
				Ours    bool
				Members []string
			}
			Nodes []struct {
				Name, Source string
				HyperNodes   []string
			}
		}
		if err := json.Unmarshal([]byte(text), &tree); err != nil || code != 200 {
			t.Fatalf("%d %v:\n%s", code, err, text)
		}
		live := f.cp.HyperNodes(t)
		if tree.Role != "leader" || !tree.Consistent || tree.Status.Nodes.Placed != 64 || len(tree.HyperNodes) != len(live) || len(tree.Nodes) != 65 {
			return fmt.Errorf("%s", text)
		}
		for _, hn := range tree.HyperNodes {
			if it := live[hn.Name]; !hn.Ours || it.Tier != hn.Tier || len(it.Members) != len(hn.Members) {
				return fmt.Errorf("%+v is %+v", hn, it)
			}
		}
		actual, err := forestOf(live, len(f.keys))
		if err != nil {
			return err
		}
		for _, n := range tree.Nodes {
			if n.Name == "cpu-000" {
				continue
			}
			if n.Source != "labels" || !slices.Equal(n.HyperNodes, actual.labels[n.Name]) {
				return fmt.Errorf("%+v, in the forest %v", n, actual.labels[n.Name])
			}
		}
		return nil
	})
}

// A restart finds its events there and raises their count instead of repeating them.
func TestControllerEventsRestart(t *testing.T) {
	t.Parallel()
	f := newCluster(t, 16)
	createNode(t, f.cp, "odd", map[string]string{gpuLabel: "true"})
	c := bed.StartController(t, f.cp, quickConfig)
	f.wait(t, 15*time.Second)
	count := func(want int32) func() error {
		return func() error {
			list, err := f.cp.Client.EventsV1().Events("default").List(bed.Context(t), metav1.ListOptions{})
			if err != nil {
				return err
			}
			others := func(e eventsv1.Event) bool { return e.Regarding.Kind != "Node" } // the API server's own
			items := slices.DeleteFunc(list.Items, others)
			if len(items) != 1 {
				return fmt.Errorf("%d events", len(items))
			}
			e := items[0]
			if got := e.Series; e.Regarding.Name != "odd" || (got == nil) != (want == 1) || (got != nil && got.Count != want) {
				return fmt.Errorf("event %+v", e)
			}
			return nil
		}
	}
	bed.Poll(t, 10*time.Second, "one event", count(1))
	c.Crash(t)
	c.Restart(t)
	bed.Poll(t, 20*time.Second, "the same event again", count(2))
	bed.Hold(t, 3*time.Second, "no other", count(2))
}

// What Volcano's chart installs, re-expressed: a scheduler without the topology plugin.
const defaultScheduler = `actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
`

const ownDiscovery = `networkTopologyDiscovery:
- source: ufm
  enabled: true
  interval: 10m
  credentials:
    secretRef: {name: ufm-credentials, namespace: volcano-system}
  config:
    endpoint: https://ufm.example.test
- source: label
  enabled: false
`

func volcanoConfig(t *testing.T, cp *bed.ControlPlane, name, key, text string) {
	t.Helper()
	maps := cp.Client.CoreV1().ConfigMaps("volcano-system")
	object := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{key: text}}
	_, err := maps.Create(bed.Context(t), object, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = maps.Update(bed.Context(t), object, metav1.UpdateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func volcanoNamespace(t *testing.T, cp *bed.ControlPlane) {
	t.Helper()
	ns := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "volcano-system"}}
	if _, err := cp.Client.CoreV1().Namespaces().Create(bed.Context(t), ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// reasons are those of the events about the controller itself.
func reasons(t *testing.T, cp *bed.ControlPlane) []string {
	t.Helper()
	list, err := cp.Client.EventsV1().Events(bed.Namespace).List(bed.Context(t), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range list.Items {
		all = append(all, e.Reason)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Volcano as its chart installs it, with a discoverer switched on and HyperNodes of another one:
// each thing is an event and a finding; put right, they are gone. Their objects are never touched.
func TestControllerBesideVolcano(t *testing.T) {
	t.Parallel()
	f := newCluster(t, 16)
	volcanoNamespace(t, f.cp)
	volcanoConfig(t, f.cp, "volcano-scheduler-configmap", "volcano-scheduler.conf", defaultScheduler)
	volcanoConfig(t, f.cp, "volcano-controller-configmap", "volcano-controller.conf", ownDiscovery)
	theirs := f.cp.CreateHyperNode(t, bed.HyperNode{Name: "hypernode-rack-tier1-x7b2f", Tier: 1, TierName: "example.test/rack",
		Labels:  map[string]string{"volcano.sh/network-topology-source": "label", "example.test/rack": "r1"},
		Members: []bed.Member{{Type: "Node", Name: "cpu-000"}}})
	c := bed.StartController(t, f.cp, quickConfig, "--crd-retry", "200ms")
	kinds := []string{"topology-plugin-missing", "volcano-discovery", "volcano-source"}
	s := statusSays(t, f.cp, "what is odd in Volcano", func(s status) bool { return slices.Equal(s.kinds(), kinds) })
	for _, want := range []string{"ufm", "hypernode-rack-tier1-x7b2f", "not even a hard one"} {
		if !slices.ContainsFunc(s.Findings, func(f struct{ Kind, Subject, Detail string }) bool { return strings.Contains(f.Detail, want) }) {
			t.Errorf("no finding says %q: %+v", want, s.Findings)
		}
	}
	bed.Poll(t, 10*time.Second, "the events", func() error {
		if got := reasons(t, f.cp); !slices.Equal(got, []string{"TopologyPluginMissing", "VolcanoDiscovery", "VolcanoSource"}) {
			return fmt.Errorf("reasons %q", got)
		}
		return nil
	})

	good, err := os.ReadFile(bed.Repo("manifests", "samples", "scheduler-configmap.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	sample := bed.Objects(t, good)[0].Object["data"].(map[string]any)["volcano-scheduler.conf"].(string)
	volcanoConfig(t, f.cp, "volcano-scheduler-configmap", "volcano-scheduler.conf", sample)
	volcanoConfig(t, f.cp, "volcano-controller-configmap", "volcano-controller.conf", strings.ReplaceAll(ownDiscovery, "true", "false"))
	statusSays(t, f.cp, "that Volcano was put right", func(s status) bool { return slices.Equal(s.kinds(), []string{"volcano-source"}) })
	if now := f.cp.HyperNodes(t)[theirs.Name]; now.ResourceVersion != theirs.ResourceVersion {
		t.Errorf("their HyperNode was written: %+v", now)
	}
	f.cp.DeleteHyperNode(t, theirs.Name)
	statusSays(t, f.cp, "that their HyperNode is gone", func(s status) bool { return s.FindingCount == 0 })

	// Without the right to look: said once, and no finding.
	err = f.cp.Client.RbacV1().ClusterRoleBindings().Delete(bed.Context(t), "weft-controller-volcano-config", metav1.DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	volcanoConfig(t, f.cp, "volcano-scheduler-configmap", "volcano-scheduler.conf", defaultScheduler)
	unchecked := func() int {
		return strings.Count(c.Output(), `level=info event="Volcano's configuration is not checked" configmap=volcano-system/volcano-scheduler-configmap`)
	}
	bed.Poll(t, 20*time.Second, "that it is not checked", func() error {
		if unchecked() == 0 {
			return fmt.Errorf("%s", c.Tail(5))
		}
		return nil
	})
	time.Sleep(3 * time.Second) // three more looks
	if n := unchecked(); n != 1 {
		t.Errorf("said %d times", n)
	}
	if s, err := readStatus(t, f.cp); err != nil || s.FindingCount != 0 {
		t.Errorf("the status is %+v, %v", s, err)
	}
}

// HyperNodes of a version that weft does not know: a finding and an event, and not one write.
func TestControllerOtherVersion(t *testing.T) {
	t.Parallel()
	bed.Program(t, "weft-controller")
	cp := bed.NewControlPlane(t)
	cp.InstallController(t)
	text, err := os.ReadFile("testdata/hypernode-crd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), "- name: v1alpha1", "- name: v2", 1)
	if changed == string(text) {
		t.Fatal("the CRD has no version v1alpha1")
	}
	cp.Create(t, bed.Objects(t, []byte(changed)))
	newFleet(t, cp, 16)
	bed.StartController(t, cp, quickConfig, "--crd-retry", "500ms")
	s := statusSays(t, cp, "the version", func(s status) bool { return slices.Contains(s.kinds(), "hypernode-version") })
	if s.HyperNodesServed || s.Nodes.Placed != 16 {
		t.Errorf("the status is %+v", s)
	}
	bed.Poll(t, 10*time.Second, "the event", func() error {
		if got := reasons(t, cp); !slices.Contains(got, "HypernodeVersion") {
			return fmt.Errorf("reasons %q", got)
		}
		return nil
	})
	time.Sleep(3 * time.Second)
	if events := cp.Audit.Since(t, 0, bed.HyperNodeWrites(bed.ControllerUser)); len(events) > 0 {
		t.Errorf("HyperNode writes: %v", events)
	}
}
