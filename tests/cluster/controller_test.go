// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weft.dev/weft/tests/cluster/bed"
)

// newCluster is a control plane with the HyperNode CRD, the controller's rights and a fleet.
func newCluster(t *testing.T, nodes int) *fleet {
	t.Helper()
	bed.Program(t, "weft-controller")
	cp := bed.NewControlPlane(t)
	cp.InstallController(t)
	cp.InstallHyperNodes(t, false)
	return newFleet(t, cp, nodes)
}

var tierNames = []string{"leaf", "spine", "core"}

// 64 nodes: two cores of two spines of two leaves of eight nodes. The HyperNodes are the fourteen
// groups that the labels name, made children first, each with one write; each node gets its labels
// with one write.
func TestControllerFirstTree(t *testing.T) {
	t.Parallel()
	f := newCluster(t, 64)
	f.cp.InstallPolicy(t)
	bed.StartController(t, f.cp, quickConfig)
	f.settle(t, 15*time.Second, bed.ControllerUser)

	writes := f.cp.Audit.Since(t, 0, bed.HyperNodeWrites(bed.ControllerUser))
	replay(t, map[string]bed.HyperNode{}, writes)
	if len(writes) != 8+4+2 {
		t.Errorf("%d HyperNode writes, want 14: %v", len(writes), writes)
	}
	for _, w := range writes {
		if w.Verb != "create" || !w.OK() {
			t.Errorf("unexpected write: %v", w)
		}
	}
	labels := f.cp.Audit.Since(t, 0, func(e bed.Event) bool {
		return e.User.Username == bed.ControllerUser && e.Object.Resource == "nodes"
	})
	if len(labels) != len(f.nodes) {
		t.Errorf("%d node writes, want %d", len(labels), len(f.nodes))
	}
	for _, hn := range f.cp.HyperNodes(t) {
		checkObject(t, hn)
	}
}

// checkObject checks what every HyperNode of weft's carries beside its members.
func checkObject(t *testing.T, hn bed.HyperNode) {
	t.Helper()
	if !ours(hn) {
		t.Errorf("HyperNode %s has labels %v", hn.Name, hn.Labels)
	}
	tierName := tierNames[hn.Tier-1]
	if hn.TierName != tierName {
		t.Errorf("HyperNode %s of tier %d has tierName %q", hn.Name, hn.Tier, hn.TierName)
	}
	shape := regexp.MustCompile(`^weft-` + tierName + `-[a-z0-9]([-a-z0-9]*[a-z0-9])?-[0-9a-f]{8}$`)
	if !shape.MatchString(hn.Name) || len(hn.Name) > 63 || !strings.Contains(hn.Name, "nn-"+tierName) {
		t.Errorf("HyperNode of tier %d is called %s", hn.Tier, hn.Name)
	}
}

// change makes one change and returns the HyperNode writes that follow from it.
func (f *fleet) change(t *testing.T, what func()) []bed.Event {
	t.Helper()
	state, mark := f.cp.HyperNodes(t), f.cp.Audit.Mark(t)
	what()
	f.settle(t, 15*time.Second, bed.ControllerUser)
	writes := f.cp.Audit.Since(t, mark, bed.HyperNodeWrites(bed.ControllerUser))
	replay(t, state, writes)
	return writes
}

// holder is the HyperNode of that tier that holds the node.
func (f *fleet) holder(t *testing.T, node string, tier int) string {
	t.Helper()
	actual, err := forestOf(f.cp.HyperNodes(t), len(f.keys))
	if err != nil || len(actual.labels[node]) < tier {
		t.Fatalf("node %s is in %v: %v", node, actual.labels[node], err)
	}
	return actual.labels[node][tier-1]
}

// One change costs the writes it needs, in the order that the scheduler survives.
func TestControllerOneChange(t *testing.T) {
	t.Parallel()
	f := newCluster(t, 64)
	bed.StartController(t, f.cp, quickConfig)
	f.settle(t, 15*time.Second, bed.ControllerUser)

	from, to := f.holder(t, "gpu-000", 1), f.holder(t, "gpu-060", 1)
	writes := f.change(t, func() { f.relabel(t, "gpu-000", awsPlace(7)) })
	if got := names(writes); !slices.Equal(got, []string{"update " + from, "update " + to}) {
		t.Errorf("a node moved from %s to %s: %q", from, to, got)
	}

	leaf := f.holder(t, "gpu-033", 1)
	writes = f.change(t, func() { f.remove(t, "gpu-033") })
	if got := names(writes); !slices.Equal(got, []string{"update " + leaf}) {
		t.Errorf("a node of %s was deleted: %q", leaf, got)
	}

	leaf = f.holder(t, "gpu-020", 1)
	writes = f.change(t, func() { f.add(t, "gpu-new", awsPlace(2)) })
	if got := names(writes); !slices.Equal(got, []string{"update " + leaf}) {
		t.Errorf("a node came to %s: %q", leaf, got)
	}

	// A label of three becomes empty, another node's is removed: no evidence, so no write. What the
	// fleet must look like stays as it was.
	mark := f.cp.Audit.Mark(t)
	patch(t, f.cp, "gpu-010", map[string]any{"metadata": map[string]any{"labels": map[string]any{awsKeys[0]: ""}}})
	patch(t, f.cp, "gpu-011", map[string]any{"metadata": map[string]any{"labels": map[string]any{awsKeys[1]: nil}}})
	bed.Hold(t, 3*time.Second, "nothing but events", func() error {
		if events := f.cp.Audit.Since(t, mark, bed.HyperNodeWrites(bed.ControllerUser)); len(events) > 0 {
			return fmt.Errorf("%v", events)
		}
		return f.right(t)
	})
	// The spine that is left of gpu-010 becomes another one, and that is evidence.
	from, to = f.holder(t, "gpu-010", 1), f.holder(t, "gpu-060", 2)
	patch(t, f.cp, "gpu-010", map[string]any{"metadata": map[string]any{"labels": map[string]any{
		awsKeys[1]: awsPlace(7)[awsKeys[1]], awsKeys[2]: awsPlace(7)[awsKeys[2]]}}})
	bed.Poll(t, 15*time.Second, "the move to another spine", func() error {
		all := f.cp.HyperNodes(t) // between release and claim the node is in none
		leaf := listing(all, bed.Member{Type: "Node", Name: "gpu-010"})
		spine := listing(all, bed.Member{Type: "HyperNode", Name: leaf})
		if leaf == "" || leaf == from || spine != to {
			return fmt.Errorf("gpu-010 is in %q under %q, its labels say %s", leaf, spine, to)
		}
		return nil
	})
}

// listing is the HyperNode that lists the member, "" if there is none.
func listing(all map[string]bed.HyperNode, member bed.Member) string {
	for name, hn := range all {
		if slices.Contains(hn.Members, member) {
			return name
		}
	}
	return ""
}

func names(events []bed.Event) []string {
	var all []string
	for _, e := range events {
		all = append(all, e.Verb+" "+e.Name())
	}
	return all
}

// The last nodes leave a leaf, then a whole spine: its HyperNode is released by its parent before
// it is deleted, and comes back with the nodes.
func TestControllerGroupsComeAndGo(t *testing.T) {
	t.Parallel()
	f := newCluster(t, 16) // two nodes a leaf
	bed.StartController(t, f.cp, quickConfig)
	f.settle(t, 15*time.Second, bed.ControllerUser)

	leaf, spine, core := f.holder(t, "gpu-000", 1), f.holder(t, "gpu-000", 2), f.holder(t, "gpu-000", 3)
	writes := f.change(t, func() {
		f.remove(t, "gpu-000")
		f.remove(t, "gpu-001")
	})
	// The two deletions may be seen apart; the last two writes are then the same.
	if got := names(writes); len(got) < 2 || !slices.Equal(got[len(got)-2:], []string{"update " + spine, "delete " + leaf}) {
		t.Errorf("leaf %s became empty: %q", leaf, got)
	}
	writes = f.change(t, func() { f.add(t, "gpu-000", awsPlace(0)) })
	if got := names(writes); !slices.Equal(got, []string{"create " + leaf, "update " + spine}) {
		t.Errorf("leaf %s came back: %q", leaf, got)
	}
	// A whole spine moves below the other core.
	other := f.holder(t, "gpu-015", 3)
	writes = f.change(t, func() {
		for _, name := range []string{"gpu-000", "gpu-002", "gpu-003"} {
			f.relabel(t, name, map[string]string{awsKeys[2]: "nn-core0001"})
		}
	})
	if f.holder(t, "gpu-000", 3) != other {
		t.Errorf("gpu-000 is not in %s; the writes were %q, out of %s", other, names(writes), core)
	}
}

// Nodes heart-beat for a minute, and other programs write what they like on them: the controller
// writes nothing.
func TestControllerQuiet(t *testing.T) {
	t.Parallel()
	f := newCluster(t, 64)
	c := bed.StartController(t, f.cp, quickConfig)
	f.settle(t, 15*time.Second, bed.ControllerUser)

	stop := make(chan struct{})
	beats := make(chan int)
	go func() { beats <- f.heartBeat(t, stop) }()
	f.still(t, time.Minute*time.Duration(long(5)), bed.ControllerUser)
	close(stop)
	if n := <-beats; n < 6*len(f.nodes) {
		t.Errorf("only %d heart-beats: the test proves little", n)
	}
	if err := f.right(t); err != nil {
		t.Error(err)
	}
	// It was alive and listening all the time: the next change is taken up at once.
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	f.change(t, func() { f.relabel(t, "gpu-000", awsPlace(7)) })
}

// heartBeat writes each node's status, and some noise, about every five seconds, as a kubelet and
// its neighbours do, until stop. It returns how many rounds of a node it made.
func (f *fleet) heartBeat(t *testing.T, stop chan struct{}) int {
	count, nodes := 0, slices.Sorted(mapKeys(f.nodes))
	tick := time.NewTicker(5 * time.Second / time.Duration(len(nodes)))
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return count
		case <-tick.C:
		}
		name := nodes[count%len(nodes)]
		now := metav1.Now().UTC().Format(time.RFC3339)
		patch(t, f.cp, name, map[string]any{"status": map[string]any{"conditions": []any{map[string]any{
			"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status",
			"lastHeartbeatTime": now, "lastTransitionTime": now}}}}, "status")
		if count%3 == 0 {
			patch(t, f.cp, name, map[string]any{"metadata": map[string]any{
				"annotations": map[string]any{"example.test/noise": now},
				"labels":      map[string]any{"example.test/noise": fmt.Sprint(count)}}})
		}
		count++
	}
}

// Volcano before v1.14 has no tierName: the server drops it, and that is no difference to write
// about again.
func TestControllerOldCRD(t *testing.T) {
	t.Parallel()
	bed.Program(t, "weft-controller")
	cp := bed.NewControlPlane(t)
	cp.InstallController(t)
	cp.InstallHyperNodes(t, true)
	f := newFleet(t, cp, 16)
	c := bed.StartController(t, f.cp, quickConfig)
	f.settle(t, 15*time.Second, bed.ControllerUser)
	for _, hn := range cp.HyperNodes(t) {
		if hn.TierName != "" {
			t.Fatalf("the old CRD keeps tierName %q: the test proves nothing", hn.TierName)
		}
	}
	c.Crash(t)
	mark := cp.Audit.Mark(t)
	c.Restart(t)
	f.adopted(t, c, mark)
}
