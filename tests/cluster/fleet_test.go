// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"weft.dev/weft/tests/cluster/bed"
)

// The labels that AWS gives its nodes, closest first: AWS counts its layers from the top.
var awsKeys = []string{
	"topology.k8s.aws/network-node-layer-3",
	"topology.k8s.aws/network-node-layer-2",
	"topology.k8s.aws/network-node-layer-1",
}

const gpuLabel = "nvidia.com/gpu.present"

// quickConfig is the configuration that most tests use: what AWS's labels say, written soon.
const quickConfig = `apiVersion: weft.dev/v1alpha1
kind: ControllerConfig
nodeSelector: "nvidia.com/gpu.present=true"
tiers: [leaf, spine, core]
sources:
- labels: {preset: aws}
debounce: {quiet: 200ms, max: 1s}
`

// freeConfig is the same without brakes: for tests that change more at a time than an outage does.
const freeConfig = quickConfig + "brakes: {lost: 100%, moved: 100%, minNodes: 8}\n"

// fleet is the Nodes of a control plane as the test made them, and with that what their HyperNodes
// must be.
type fleet struct {
	cp    *bed.ControlPlane
	keys  []string // of the levels, closest first
	nodes map[string]map[string]string
}

// place is the network path of the AWS fleet's node number i: two cores of two spines of two leaves.
func place(i, nodes int) map[string]string {
	leaf := i * 8 / nodes
	return awsPlace(leaf)
}

// awsPlace are the labels of a node on leaf 0 to 7.
func awsPlace(leaf int) map[string]string {
	return map[string]string{
		gpuLabel:   "true",
		awsKeys[0]: fmt.Sprintf("nn-leaf%04d", leaf),
		awsKeys[1]: fmt.Sprintf("nn-spine%04d", leaf/2),
		awsKeys[2]: fmt.Sprintf("nn-core%04d", leaf/4),
	}
}

// newFleet makes count nodes with AWS labels, and one node that the selector leaves out.
func newFleet(t *testing.T, cp *bed.ControlPlane, count int) *fleet {
	t.Helper()
	f := &fleet{cp: cp, keys: awsKeys, nodes: map[string]map[string]string{}}
	var group sync.WaitGroup
	for i := range count {
		name, labels := fmt.Sprintf("gpu-%03d", i), place(i, count)
		f.nodes[name] = labels
		group.Go(func() { createNode(t, cp, name, labels) })
	}
	group.Wait()
	createNode(t, cp, "cpu-000", map[string]string{awsKeys[0]: "nn-leaf0000", awsKeys[1]: "nn-spine0000", awsKeys[2]: "nn-core0000"})
	if t.Failed() {
		t.FailNow()
	}
	return f
}

func createNode(t *testing.T, cp *bed.ControlPlane, name string, labels map[string]string) {
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	if _, err := cp.Client.CoreV1().Nodes().Create(bed.Context(t), node, metav1.CreateOptions{}); err != nil {
		t.Errorf("node %s: %v", name, err)
	}
}

func (f *fleet) add(t *testing.T, name string, labels map[string]string) {
	t.Helper()
	createNode(t, f.cp, name, labels)
	f.nodes[name] = labels
}

func (f *fleet) remove(t *testing.T, name string) {
	t.Helper()
	if err := f.cp.Client.CoreV1().Nodes().Delete(bed.Context(t), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	delete(f.nodes, name)
}

// relabel sets labels of a node in one write.
func (f *fleet) relabel(t *testing.T, name string, labels map[string]string) {
	t.Helper()
	patch(t, f.cp, name, map[string]any{"metadata": map[string]any{"labels": labels}})
	merged := maps.Clone(f.nodes[name])
	maps.Copy(merged, labels)
	f.nodes[name] = merged
}

func patch(t *testing.T, cp *bed.ControlPlane, node string, change map[string]any, subresources ...string) {
	t.Helper()
	text, err := json.Marshal(change)
	if err != nil {
		t.Fatal(err)
	}
	_, err = cp.Client.CoreV1().Nodes().Patch(bed.Context(t), node, types.MergePatchType, text, metav1.PatchOptions{}, subresources...)
	if err != nil {
		t.Fatal(err)
	}
}

// groups are the node sets that must be HyperNodes: for each tier, the nodes that share the values
// of that level and of all levels above. Each set is its sorted names, space separated.
func (f *fleet) groups() []map[string]bool {
	tiers := make([]map[string]bool, len(f.keys))
	for tier := range f.keys {
		byPath := map[string][]string{}
		for name, labels := range f.nodes {
			var path []string
			for _, key := range f.keys[tier:] {
				path = append(path, labels[key])
			}
			byPath[strings.Join(path, "/")] = append(byPath[strings.Join(path, "/")], name)
		}
		tiers[tier] = map[string]bool{}
		for _, names := range byPath {
			tiers[tier][setOf(names)] = true
		}
	}
	return tiers
}

func setOf(names []string) string {
	slices.Sort(names)
	return strings.Join(names, " ")
}

func ours(hn bed.HyperNode) bool {
	return hn.Labels["volcano.sh/network-topology-source"] == "weft" &&
		hn.Labels["app.kubernetes.io/managed-by"] == "weft-controller" && hn.Labels["app.kubernetes.io/instance"] != ""
}

// forest is what weft's HyperNodes say.
type forest struct {
	groups []map[string]bool   // by tier - 1: node sets
	labels map[string][]string // node -> the name of its HyperNode on each tier
}

// forestOf checks that weft's HyperNodes are a strict forest of even depth and reads it.
func forestOf(all map[string]bed.HyperNode, tiers int) (forest, error) {
	f := forest{labels: map[string][]string{}}
	below := map[string][]string{} // HyperNode -> its nodes
	parent := map[string]string{}
	for tier := 1; tier <= tiers; tier++ {
		f.groups = append(f.groups, map[string]bool{})
		for _, hn := range all {
			if !ours(hn) || hn.Tier != int64(tier) {
				continue
			}
			for _, m := range hn.Members {
				if err := member(hn, m, all, parent); err != nil {
					return f, err
				}
				if m.Type == "Node" {
					below[hn.Name] = append(below[hn.Name], m.Name)
				} else {
					below[hn.Name] = append(below[hn.Name], below[m.Name]...)
				}
			}
			for _, node := range below[hn.Name] {
				if len(f.labels[node]) != tier-1 {
					return f, fmt.Errorf("node %s is in %d HyperNodes below tier %d", node, len(f.labels[node]), tier)
				}
				f.labels[node] = append(f.labels[node], hn.Name)
			}
			f.groups[tier-1][setOf(slices.Clone(below[hn.Name]))] = true
		}
	}
	for _, hn := range all {
		if ours(hn) && (hn.Tier < 1 || hn.Tier > int64(tiers)) {
			return f, fmt.Errorf("HyperNode %s has tier %d", hn.Name, hn.Tier)
		}
	}
	return f, nil
}

// member checks one member of a HyperNode of a forest.
func member(hn bed.HyperNode, m bed.Member, all map[string]bed.HyperNode, parent map[string]string) error {
	key := m.Type + " " + m.Name
	if m.Name == "" {
		return fmt.Errorf("HyperNode %s has a member that is not named exactly", hn.Name)
	}
	if parent[key] != "" {
		return fmt.Errorf("%s is listed by %s and %s", key, parent[key], hn.Name)
	}
	parent[key] = hn.Name
	if (m.Type == "Node") != (hn.Tier == 1) {
		return fmt.Errorf("HyperNode %s of tier %d lists a %s", hn.Name, hn.Tier, key)
	}
	if child, exists := all[m.Name]; m.Type == "HyperNode" && (!exists || child.Tier != hn.Tier-1) {
		return fmt.Errorf("HyperNode %s of tier %d lists %s, which is of tier %d (exists: %v)", hn.Name, hn.Tier, m.Name, child.Tier, exists)
	}
	return nil
}

// right is nil if HyperNodes and node labels are what the fleet's labels ask for.
func (f *fleet) right(t *testing.T) error {
	t.Helper()
	actual, err := forestOf(f.cp.HyperNodes(t), len(f.keys))
	if err != nil {
		return err
	}
	for tier, want := range f.groups() {
		if !maps.Equal(actual.groups[tier], want) {
			return fmt.Errorf("tier %d\n got %v\nwant %v", tier+1, slices.Sorted(maps.Keys(actual.groups[tier])), slices.Sorted(maps.Keys(want)))
		}
	}
	list, err := f.cp.Client.CoreV1().Nodes().List(bed.Context(t), metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, node := range list.Items {
		if err := labelled(node, actual.labels[node.Name]); err != nil {
			return err
		}
	}
	return nil
}

// labelled checks a node's tier labels: those of its HyperNodes and no more.
func labelled(node v1.Node, want []string) error {
	count := 0
	for key := range node.Labels {
		if strings.HasPrefix(key, "weft.dev/tier-") {
			count++
		}
	}
	if count != len(want) {
		return fmt.Errorf("node %s has %d tier labels, want %d", node.Name, count, len(want))
	}
	for i, name := range want {
		if got := node.Labels[fmt.Sprintf("weft.dev/tier-%d", i+1)]; got != name {
			return fmt.Errorf("node %s has weft.dev/tier-%d=%q, want %q", node.Name, i+1, got, name)
		}
	}
	return nil
}

// wait waits until HyperNodes and labels are right.
func (f *fleet) wait(t *testing.T, within time.Duration) {
	t.Helper()
	bed.Poll(t, within, "HyperNodes and labels as the nodes' labels ask for", func() error { return f.right(t) })
}

// settle waits until they are right, and checks that nothing is written after that.
func (f *fleet) settle(t *testing.T, within time.Duration, user string) {
	t.Helper()
	f.wait(t, within)
	f.still(t, 2*time.Second, user)
}

// still checks that the user writes nothing for a while.
func (f *fleet) still(t *testing.T, span time.Duration, user string) {
	t.Helper()
	mark, begin, writes := f.cp.Audit.Mark(t), time.Now(), bed.Writes(user)
	// A write that was asked for before is logged after its effect can be seen.
	late := func(e bed.Event) bool { return writes(e) && e.Received.After(begin) }
	bed.Hold(t, span, "no more writes", func() error {
		if events := f.cp.Audit.Since(t, mark, late); len(events) > 0 {
			return fmt.Errorf("%v", events)
		}
		return nil
	})
}

// outcomes finds out what became of writes whose client was killed meanwhile. The server answers those
// with 504, and may have done them all the same: the next write of that object that went through
// tells, by the version that it was for, or else what is there at the end.
func outcomes(events []bed.Event, end map[string]bed.HyperNode) []bed.Event {
	all := slices.Clone(events)
	for i, e := range all {
		if e.Response.Code != http.StatusGatewayTimeout {
			continue
		}
		base, after := e.BaseVersion(), end[e.Name()].ResourceVersion
		for _, later := range all[i+1:] {
			if later.Name() == e.Name() && later.OK() {
				after = later.BaseVersion()
				break
			}
		}
		if after != base {
			all[i].Response.Code = http.StatusOK
		}
	}
	return all
}

// replay carries the HyperNode writes of an audit log out on a map, and checks after each of them
// what Volcano's scheduler needs: nothing is listed by two HyperNodes, no HyperNode lists one that
// does not exist, and tiers rise from child to parent.
func replay(t *testing.T, state map[string]bed.HyperNode, events []bed.Event) {
	t.Helper()
	for i, e := range events {
		if !e.OK() || e.Object.Subresource != "" {
			continue
		}
		switch e.Verb {
		case "create", "update":
			hn, err := bed.ParseHyperNode(e.Body)
			if err != nil {
				t.Fatal(err)
			}
			state[hn.Name] = hn
		case "delete":
			delete(state, e.Name())
		default:
			t.Errorf("write %d: %v: HyperNodes are changed by create, update and delete only", i, e)
		}
		if err := sound(state); err != nil {
			t.Errorf("after write %d of %d (%v): %v", i+1, len(events), e, err)
		}
	}
}

func sound(state map[string]bed.HyperNode) error {
	parent := map[bed.Member]string{}
	for _, hn := range state {
		for _, m := range hn.Members {
			if other, twice := parent[m]; twice {
				return fmt.Errorf("%s %s is listed by %s and by %s", m.Type, m.Name, other, hn.Name)
			}
			parent[m] = hn.Name
			if child, exists := state[m.Name]; m.Type == "HyperNode" && (!exists || child.Tier >= hn.Tier) {
				return fmt.Errorf("%s of tier %d lists %s (exists: %v, tier %d)", hn.Name, hn.Tier, m.Name, exists, child.Tier)
			}
		}
	}
	return nil
}
