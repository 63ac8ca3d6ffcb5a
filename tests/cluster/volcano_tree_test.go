// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"weft.dev/weft/tests/cluster/bed"
)

// schedulerWorld is a fleet with a real Volcano scheduler that has a gang it can place nowhere: in
// each session it looks at every HyperNode.
type schedulerWorld struct {
	*fleet
	scheduler *bed.Scheduler
	sessions  int // so far
}

func newSchedulerWorld(t *testing.T) *schedulerWorld {
	t.Helper()
	bed.SchedulerProgram(t)
	f := newCluster(t, 16) // eight leaves of two nodes
	text, err := os.ReadFile("testdata/volcano-crds.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f.cp.Create(t, bed.Objects(t, text))
	for name := range f.nodes {
		ready(t, f.cp, name)
	}
	w := &schedulerWorld{fleet: f, scheduler: bed.StartScheduler(t, f.cp)}
	for mode, tier := range map[string]int{"hard-1": 1, "hard-2": 2, "soft": 0} {
		w.impossibleGang(t, mode, tier)
	}
	return w
}

// impossibleGang is a gang of more whole nodes than there are.
func (w *schedulerWorld) impossibleGang(t *testing.T, name string, tier int) {
	t.Helper()
	topology := fmt.Sprintf("{mode: hard, highestTierAllowed: %d}", tier)
	if tier == 0 {
		topology = "{mode: soft}"
	}
	const members = 24
	w.cp.Create(t, bed.Objects(t, []byte(fmt.Sprintf(`apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: %s, namespace: default}
spec: {minMember: %d, queue: default, networkTopology: %s}
`, name, members, topology))))
	for i := range members {
		pod := wholeNode(fmt.Sprintf("%s-%d", name, i))
		pod.Annotations = map[string]string{"scheduling.k8s.io/group-name": name}
		pod.Spec.SchedulerName = "volcano"
		create(t, w.cp, pod)
	}
}

// same is nil if the scheduler's tree is the one that the API server has.
func (w *schedulerWorld) same(t *testing.T) error {
	t.Helper()
	all := w.cp.HyperNodes(t)
	want := map[string]bed.TreeNode{}
	var below func(name string) []string
	below = func(name string) []string {
		var nodes []string
		for _, m := range all[name].Members {
			if m.Type == "Node" {
				nodes = append(nodes, m.Name)
			} else {
				nodes = append(nodes, below(m.Name)...)
			}
		}
		return nodes
	}
	for name, hn := range all {
		want[name] = bed.TreeNode{Tier: int(hn.Tier), Parent: listing(all, bed.Member{Type: "HyperNode", Name: name}), Nodes: setOf(below(name))}
	}
	got, err := w.scheduler.Tree(t)
	if err != nil {
		return err
	}
	if !maps.Equal(got, want) {
		return fmt.Errorf("the scheduler's tree\n got %v\nwant %v", got, want)
	}
	return nil
}

// check is called after a step: HyperNodes are right, the scheduler lives, has the same tree, and
// was never not ready.
func (w *schedulerWorld) check(t *testing.T, what string, right func() error) {
	t.Helper()
	bed.Poll(t, 30*time.Second, what, right)
	bed.Poll(t, 15*time.Second, what+": the scheduler's tree", func() error { return w.same(t) })
	w.moreSessions(t)
	all, notReady := w.scheduler.Sessions()
	if notReady != 0 {
		t.Errorf("%s: HyperNodes were not ready in %d of %d sessions", what, notReady, all)
	}
	t.Logf("%s: tree of %d HyperNodes equal, %d sessions, %d not ready", what, len(w.cp.HyperNodes(t)), all-w.sessions, notReady)
	w.sessions = all
}

// moreSessions waits until the scheduler has tried its jobs on the tree as it is.
func (w *schedulerWorld) moreSessions(t *testing.T) {
	t.Helper()
	before, _ := w.scheduler.Sessions()
	bed.Poll(t, 15*time.Second, "more sessions", func() error {
		if err := w.scheduler.Check(); err != nil {
			return err
		}
		if now, _ := w.scheduler.Sessions(); now < before+3 {
			return fmt.Errorf("%d sessions", now-before)
		}
		return nil
	})
}

// The scheduler that weft's writes are for: it lives, never finds HyperNodes not ready, and has the
// same tree, through all that changes them. Case names are those of the table in docs/volcano.md.
func TestVolcanoTree(t *testing.T) {
	t.Parallel()
	w := newSchedulerWorld(t)
	c, whole := bed.StartController(t, w.cp, freeConfig), t // what a part starts lives for the whole
	right := func() error { return w.right(t) }
	w.check(t, "the first tree", right)

	t.Run("C5 a node changes its leaf", func(t *testing.T) {
		w.relabel(t, "gpu-000", awsPlace(7))
		w.check(t, "to another core", right)
		w.relabel(t, "gpu-000", awsPlace(0))
		w.check(t, "and back", right)
	})
	t.Run("C4 leaves change their spine", func(t *testing.T) {
		for i := range 10 {
			place := awsPlace(0)
			place[awsKeys[1]] = awsPlace(2 * (i % 2))[awsKeys[1]]
			for _, name := range w.inLeaf(0) {
				w.relabel(t, name, place)
			}
			w.check(t, fmt.Sprint("move ", i+1), right)
		}
	})
	t.Run("C2 leaf, spine and core go", func(t *testing.T) {
		for _, gone := range [][]int{{1}, {0}, {2, 3}} { // leaf 1, then its spine, then its core
			for _, leaf := range gone {
				for _, name := range w.inLeaf(leaf) {
					w.remove(t, name)
				}
			}
			w.check(t, fmt.Sprint("without leaves ", gone), right)
		}
		for leaf := range 4 {
			for i := range 2 {
				w.addReady(t, fmt.Sprintf("new-%d-%d", leaf, i), leaf)
			}
		}
		w.check(t, "all are back", right)
	})
	t.Run("C6 the controller starts again", func(t *testing.T) {
		before := w.cp.HyperNodes(t)
		mark := w.cp.Audit.Mark(t)
		c.Crash(t)
		c.Restart(whole)
		w.still(t, 3*time.Second, bed.ControllerUser)
		if writes := w.cp.Audit.Since(t, mark, bed.HyperNodeWrites(bed.ControllerUser)); len(writes) != 0 || !maps.EqualFunc(before, w.cp.HyperNodes(t), sameVersion) {
			t.Errorf("writes of a restart: %v", writes)
		}
		w.check(t, "after a restart", right)
	})
	t.Run("C7 others' HyperNodes stay", func(t *testing.T) { w.foreign(t) })
	t.Run("C8 a webhook refuses for a while", func(t *testing.T) { w.refused(t) })
	t.Run("C9 the labels are gone for a while", func(t *testing.T) { w.forgotten(t) })
	t.Run("C11 the leader dies", func(t *testing.T) {
		second := bed.StartController(whole, w.cp, freeConfig)
		bed.Poll(t, 15*time.Second, "a follower", func() error {
			if !strings.Contains(second.Output(), "another leads") {
				return fmt.Errorf("it does not follow yet:\n%s", second.Tail(5))
			}
			return nil
		})
		w.relabel(t, "gpu-014", awsPlace(4))
		c.Kill() // its Lease runs out, and the other one goes on
		w.check(t, "after the leader's death", right)
	})
	t.Run("C3 all is taken down", func(t *testing.T) {
		for name := range maps.Clone(w.nodes) {
			w.remove(t, name)
		}
		w.check(t, "no node is left", func() error {
			left := slices.Sorted(maps.Keys(w.cp.HyperNodes(t)))
			if !slices.Equal(left, []string{"by-hand", "their-leaf"}) {
				return fmt.Errorf("left: %v", left)
			}
			return nil
		})
	})
}

// The check can fail: with a HyperNode that two others list, sessions find HyperNodes not ready.
func TestVolcanoNotReady(t *testing.T) {
	t.Parallel()
	w := newSchedulerWorld(t)
	w.cp.Create(t, bed.Objects(t, []byte(`apiVersion: topology.volcano.sh/v1alpha1
kind: HyperNode
metadata: {name: leaf}
spec: {tier: 1, members: [{type: Node, selector: {exactMatch: {name: gpu-000}}}]}
---
apiVersion: topology.volcano.sh/v1alpha1
kind: HyperNode
metadata: {name: spine-a}
spec: {tier: 2, members: [{type: HyperNode, selector: {exactMatch: {name: leaf}}}]}
---
apiVersion: topology.volcano.sh/v1alpha1
kind: HyperNode
metadata: {name: spine-b}
spec: {tier: 2, members: [{type: HyperNode, selector: {exactMatch: {name: leaf}}}]}
`)))
	bed.Poll(t, 30*time.Second, "sessions that are not ready", func() error {
		if all, notReady := w.scheduler.Sessions(); notReady == 0 {
			return fmt.Errorf("none of %d", all)
		}
		return w.scheduler.Check()
	})
}

func sameVersion(a, b bed.HyperNode) bool { return a.ResourceVersion == b.ResourceVersion }

// inLeaf are the nodes that the labels put on a leaf.
func (w *schedulerWorld) inLeaf(leaf int) []string {
	var names []string
	for name, labels := range w.nodes {
		if labels[awsKeys[0]] == awsPlace(leaf)[awsKeys[0]] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (w *schedulerWorld) addReady(t *testing.T, name string, leaf int) {
	t.Helper()
	w.add(t, name, awsPlace(leaf))
	ready(t, w.cp, name)
}

// foreign makes HyperNodes of others, with nodes that weft's tree does not have, and changes ours.
func (w *schedulerWorld) foreign(t *testing.T) {
	for _, name := range []string{"their-0", "their-1"} {
		createNode(t, w.cp, name, map[string]string{"kubernetes.io/hostname": name})
		ready(t, w.cp, name)
	}
	w.cp.Create(t, bed.Objects(t, []byte(`apiVersion: topology.volcano.sh/v1alpha1
kind: HyperNode
metadata: {name: their-leaf, labels: {volcano.sh/network-topology-source: label}}
spec: {tier: 1, tierName: leaf, members: [{type: Node, selector: {exactMatch: {name: their-0}}}]}
---
apiVersion: topology.volcano.sh/v1alpha1
kind: HyperNode
metadata: {name: by-hand}
spec: {tier: 1, tierName: leaf, members: [{type: Node, selector: {exactMatch: {name: their-1}}}]}
`)))
	theirs := func() map[string]bed.HyperNode {
		all := w.cp.HyperNodes(t)
		return map[string]bed.HyperNode{"their-leaf": all["their-leaf"], "by-hand": all["by-hand"]}
	}
	before := theirs()
	w.relabel(t, "gpu-010", awsPlace(4))
	w.check(t, "beside others", func() error { return w.right(t) })
	if !maps.EqualFunc(before, theirs(), sameVersion) {
		t.Errorf("others' HyperNodes were %v and are %v", before, theirs())
	}
}

// refused lets every write of a HyperNode fail for a while.
func (w *schedulerWorld) refused(t *testing.T) {
	accept := refuseHyperNodes(t, w.cp)
	w.relabel(t, "gpu-011", awsPlace(7))
	w.awaitRefused(t, 1)
	w.check(t, "while it refuses", func() error { return nil })
	accept()
	w.check(t, "after it", func() error { return w.right(t) })
}

// forgotten takes every node's labels away: nothing may change; and gives them back.
func (w *schedulerWorld) forgotten(t *testing.T) {
	before, mark := w.cp.HyperNodes(t), w.cp.Audit.Mark(t)
	for name := range w.nodes {
		patch(t, w.cp, name, map[string]any{"metadata": map[string]any{"labels": map[string]any{awsKeys[0]: nil, awsKeys[1]: nil, awsKeys[2]: nil}}})
	}
	bed.Hold(t, 3*time.Second, "no HyperNode is written", func() error {
		if writes := w.cp.Audit.Since(t, mark, bed.HyperNodeWrites(bed.ControllerUser)); len(writes) > 0 {
			return fmt.Errorf("%v", writes)
		}
		return nil
	})
	w.check(t, "without labels", func() error { return nil })
	for name, labels := range w.nodes {
		text, err := json.Marshal(labels)
		if err != nil {
			t.Fatal(err)
		}
		patch(t, w.cp, name, map[string]any{"metadata": map[string]any{"labels": json.RawMessage(text)}})
	}
	w.check(t, "with labels again", func() error { return w.right(t) })
	if !maps.EqualFunc(before, w.cp.HyperNodes(t), sameVersion) {
		t.Error("HyperNodes changed")
	}
}
