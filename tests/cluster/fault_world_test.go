// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"weft.dev/weft/tests/cluster/bed"
	"weft.dev/weft/tests/cluster/bed/fakeapi"
)

type object = fakeapi.Object

// world is a cluster that a test changes and weft follows, on the real API server or on the fake.
// What must come out is worked out here, from what the test did to the Nodes.
type world struct {
	ask     func(method, path string, body object) (object, error) // as admin; PATCH merges
	changes func() []change                                        // of HyperNodes, in the server's order
	random  *rand.Rand
	nodes   map[string]*spot
	count   int // names given so far
	foreign map[string]bed.HyperNode
	judge   judge
	hand    *hands
	said    []string // what was done, for the log of a failure
}

// spot is a Node and where it belongs.
type spot struct {
	labels   map[string]string // of the topology, as they are on the Node
	last     []string          // the place it has, closest level first; nil: none
	excluded bool
	touched  bool // in this round
}

// place is where the Node must be: where its labels say, or where it was if they say nothing (all)
// any more.
func (m *spot) place() []string {
	if m.excluded {
		return nil
	}
	var path []string
	for _, key := range awsKeys {
		if m.labels[key] == "" {
			return m.last
		}
		path = append(path, m.labels[key])
	}
	return path
}

// hands remembers the test's own writes of HyperNodes.
type hands struct {
	mu     sync.Mutex
	writes map[string]bool // "name version", or "name uid" of what was deleted
}

func (h *hands) did(name, id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.writes[name+" "+id] = true
}

func (h *hands) any(name string, ids ...string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(ids, func(id string) bool { return h.writes[name+" "+id] })
}

func newWorld(random *rand.Rand) *world {
	return &world{random: random, nodes: map[string]*spot{}, foreign: map[string]bed.HyperNode{},
		hand: &hands{writes: map[string]bool{}}}
}

// onFake is a world on a fake.
func onFake(fake *bed.Fake, random *rand.Rand) *world {
	w := newWorld(random)
	w.ask = fake.AsAdmin
	w.changes = func() []change {
		var all []change
		for _, c := range fake.Changes(0) {
			if c.Resource == "hypernodes" && !sameSpec(c.Before, c.After) {
				all = append(all, change{verb: c.Verb, name: c.Name, version: strconv.FormatInt(c.Revision, 10),
					after: hyperNodeOf(c.After), byHand: c.User == bed.FakeAdmin})
			}
		}
		return all
	}
	return w
}

func sameSpec(a, b object) bool {
	return a != nil && b != nil && fmt.Sprint(a["spec"]) == fmt.Sprint(b["spec"])
}

func hyperNodeOf(o object) bed.HyperNode {
	if o == nil {
		return bed.HyperNode{}
	}
	text, err := json.Marshal(o)
	if err != nil {
		panic(err) // it came from JSON
	}
	hn, err := bed.ParseHyperNode(text)
	if err != nil {
		panic(err)
	}
	return hn
}

func (w *world) say(format string, args ...any) {
	w.said = append(w.said, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// must makes a request that succeeds.
func (w *world) must(t *testing.T, method, path string, body object) object {
	t.Helper()
	o, err := w.ask(method, path, body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return o
}

// ---- what the test does ----

func labelsObject(labels map[string]string) object {
	o := object{}
	for key, value := range labels {
		if o[key] = value; value == "" {
			o[key] = nil // of a merge: away with it
		}
	}
	return o
}

// brief says what labels say of a place, closest level first.
func brief(labels map[string]string) string {
	if len(labels) == len(awsKeys)+1 && labels[gpuLabel] != "" {
		return labels[awsKeys[0]] + " " + labels[awsKeys[1]] + " " + labels[awsKeys[2]]
	}
	return fmt.Sprint(labels)
}

// join makes a Node; labels nil: one that no source knows.
func (w *world) join(t *testing.T, name string, labels map[string]string) {
	t.Helper()
	w.say("join %s %s", name, brief(labels))
	all := maps.Clone(labels)
	if all == nil {
		all = map[string]string{}
	}
	all[gpuLabel] = "true"
	w.must(t, "POST", "/api/v1/nodes", object{"apiVersion": "v1", "kind": "Node", "metadata": object{"name": name, "labels": labelsObject(all)}})
	w.nodes[name] = &spot{labels: all, touched: true}
}

func (w *world) leave(t *testing.T, name string) {
	t.Helper()
	w.say("leave %s", name)
	w.must(t, "DELETE", "/api/v1/nodes/"+name, nil)
	delete(w.nodes, name)
}

// relabel changes labels; "" takes one away.
func (w *world) relabel(t *testing.T, name string, labels map[string]string) {
	t.Helper()
	w.say("relabel %s %s", name, brief(labels))
	w.must(t, "PATCH", "/api/v1/nodes/"+name, object{"metadata": object{"labels": labelsObject(labels)}})
	m := w.nodes[name]
	m.touched = true
	for key, value := range labels {
		if m.labels[key] = value; value == "" {
			delete(m.labels, key)
		}
	}
}

// some is a node that was not touched in this round and that keep accepts; "": there is none.
func (w *world) some(keep func(*spot) bool) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		if m := w.nodes[name]; !m.touched && keep(m) {
			all = append(all, name)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return all[w.random.IntN(len(all))]
}

func anyNode(*spot) bool { return true }

// whole accepts nodes whose labels say where they are.
func whole(m *spot) bool {
	return !m.excluded && m.labels[awsKeys[0]] != "" && m.labels[awsKeys[1]] != "" && m.labels[awsKeys[2]] != ""
}

const excludeLabel = "weft.dev/exclude"

// one makes one random change of the topology.
func (w *world) one(t *testing.T) {
	t.Helper()
	fresh := func() string { w.count++; return fmt.Sprintf("gpu-%03d", w.count) }
	switch kind := w.random.IntN(13); kind {
	case 0, 1:
		w.join(t, fresh(), awsPlace(w.random.IntN(8)))
	case 2:
		w.join(t, fresh(), nil)
	case 3, 4:
		if name := w.some(anyNode); name != "" && len(w.nodes) > 8 {
			w.leave(t, name)
			if kind == 4 { // another machine under the old name
				w.join(t, name, awsPlace(w.random.IntN(8)))
			}
		}
	case 5:
		w.relabelSome(t, anyNode, map[string]string{"example.test/noise": fmt.Sprint(w.random.IntN(1000))})
	case 6:
		w.relabelSome(t, whole, map[string]string{awsKeys[0]: "", awsKeys[1]: "", awsKeys[2]: ""})
	case 7:
		w.relabelSome(t, whole, map[string]string{awsKeys[w.random.IntN(3)]: ""})
	case 8:
		w.exclude(t)
	case 9:
		w.another(t)
	case 10:
		w.handMade(t)
	default:
		w.move(t)
	}
}

// move gives a node the labels of some leaf: a move, or labels that are back.
func (w *world) move(t *testing.T) {
	t.Helper()
	w.relabelSome(t, func(m *spot) bool { return !m.excluded }, awsPlace(w.random.IntN(8)))
}

func (w *world) relabelSome(t *testing.T, which func(*spot) bool, labels map[string]string) {
	t.Helper()
	if name := w.some(which); name != "" {
		w.relabel(t, name, labels)
	}
}

// exclude takes a node out, or lets one in again.
func (w *world) exclude(t *testing.T) {
	t.Helper()
	name := w.some(func(m *spot) bool { return m.excluded })
	if name != "" && w.random.IntN(2) == 0 {
		w.relabel(t, name, map[string]string{excludeLabel: ""})
		w.nodes[name].excluded = false
	} else if name = w.some(whole); name != "" {
		w.relabel(t, name, map[string]string{excludeLabel: "true"})
		w.nodes[name].excluded = true
	}
}

// another makes or removes a HyperNode that is not weft's.
func (w *world) another(t *testing.T) {
	t.Helper()
	for name, hn := range w.foreign {
		if w.random.IntN(2) == 0 {
			w.say("delete the stranger %s", name)
			w.hand.did(name, hn.UID)
			w.must(t, "DELETE", hyperNodesPath+"/"+name, nil)
			delete(w.foreign, name)
		}
		return
	}
	w.count++
	name := fmt.Sprintf("stranger-%d", w.count)
	w.foreign[name] = w.stranger(t, name)
}

// stranger makes a HyperNode that is not weft's.
func (w *world) stranger(t *testing.T, name string) bed.HyperNode {
	t.Helper()
	w.say("create the stranger %s", name)
	made := hyperNodeOf(w.must(t, "POST", hyperNodesPath, object{"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode",
		"metadata": object{"name": name, "labels": object{"volcano.sh/network-topology-source": "label"}},
		"spec": object{"tier": float64(1), "members": []any{object{"type": "Node",
			"selector": object{"exactMatch": object{"name": "cpu-" + name}}}}}}))
	w.hand.did(name, made.ResourceVersion)
	return made
}

// handMade does to one of weft's HyperNodes what a person or Volcano's own controller may do.
func (w *world) handMade(t *testing.T) {
	t.Helper()
	state := w.hyperNodes(t)
	inside := below(state)
	// What a node without labels is kept by must stay, and what has just lost a node is no one's to
	// give back.
	free := func(name string) bool {
		return ours(state[name]) && !slices.ContainsFunc(inside[name], func(node string) bool {
			m := w.nodes[node]
			return m == nil || m.touched || !whole(m)
		})
	}
	candidates := slices.DeleteFunc(slices.Sorted(maps.Keys(state)), func(name string) bool { return !free(name) })
	if len(candidates) == 0 {
		return
	}
	name := candidates[w.random.IntN(len(candidates))]
	for _, node := range inside[name] { // a Node that loses its labels now would have no last place
		w.nodes[node].touched = true
	}
	path := hyperNodesPath + "/" + name
	switch w.random.IntN(3) {
	case 0:
		w.say("status of %s", name)
		_, _ = w.ask("PATCH", path+"/status", object{"status": object{"nodeCount": float64(w.random.IntN(100))}})
	case 1:
		w.say("delete %s by hand", name)
		w.hand.did(name, state[name].UID)
		_, _ = w.ask("DELETE", path, object{"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": object{"uid": state[name].UID}})
	default:
		w.handEdit(t, path)
	}
}

// handEdit takes the first member out of an object that has several.
func (w *world) handEdit(t *testing.T, path string) {
	t.Helper()
	o, err := w.ask("GET", path, nil)
	if err != nil {
		return // weft has just deleted it
	}
	spec := o["spec"].(object)
	members := spec["members"].([]any)
	if len(members) < 2 {
		return
	}
	spec["members"] = members[1:]
	if o, err = w.ask("PUT", path, o); err == nil {
		hn := hyperNodeOf(o)
		w.say("edit %s by hand: %v", hn.Name, hn.Members)
		w.hand.did(hn.Name, hn.ResourceVersion)
	}
}

// ---- what must come out ----

func (w *world) hyperNodes(t *testing.T) map[string]bed.HyperNode {
	t.Helper()
	all := map[string]bed.HyperNode{}
	for _, item := range w.must(t, "GET", hyperNodesPath, nil)["items"].([]any) {
		hn := hyperNodeOf(item.(object))
		all[hn.Name] = hn
	}
	return all
}

// groups are the node sets of each tier, as fleet.groups: by path.
func (w *world) groups() []map[string]bool {
	tiers := make([]map[string]bool, len(awsKeys))
	for tier := range tiers {
		byPath := map[string][]string{}
		for name, m := range w.nodes {
			if place := m.place(); place != nil {
				path := strings.Join(place[tier:], "/")
				byPath[path] = append(byPath[path], name)
			}
		}
		tiers[tier] = map[string]bool{}
		for _, names := range byPath {
			tiers[tier][setOf(names)] = true
		}
	}
	return tiers
}

// right is nil if HyperNodes and node labels are what they must be.
func (w *world) right(t *testing.T) error {
	t.Helper()
	state := w.hyperNodes(t)
	actual, err := forestOf(state, len(awsKeys))
	if err != nil {
		return err
	}
	for tier, want := range w.groups() {
		if !maps.Equal(actual.groups[tier], want) {
			return fmt.Errorf("tier %d\n got %v\nwant %v", tier+1, slices.Sorted(maps.Keys(actual.groups[tier])), slices.Sorted(maps.Keys(want)))
		}
	}
	for _, item := range w.must(t, "GET", "/api/v1/nodes", nil)["items"].([]any) {
		meta := item.(object)["metadata"].(object)
		name, _ := meta["name"].(string)
		labels, _ := meta["labels"].(object)
		want := actual.labels[name]
		for tier := range 4 {
			value, _ := labels[fmt.Sprintf("weft.dev/tier-%d", tier+1)].(string)
			if wanted := append(slices.Clone(want), "", "", "", "")[tier]; value != wanted {
				return fmt.Errorf("node %s has weft.dev/tier-%d=%q, want %q", name, tier+1, value, wanted)
			}
		}
	}
	for name, hn := range w.foreign {
		if now := state[name]; now.UID != hn.UID || now.ResourceVersion != hn.ResourceVersion {
			return fmt.Errorf("%s of another was touched: %+v, was %+v", name, now, hn)
		}
	}
	return nil
}

// begin starts a round: from here on what stays is known by what it was.
func (w *world) begin() {
	for _, m := range w.nodes {
		m.touched = false
		m.last = m.place()
	}
}

// settled tells the judge which HyperNodes hold a node that has not moved since begin, and has it
// judge what was written.
func (w *world) settled(t *testing.T, before map[string]bed.HyperNode) {
	t.Helper()
	stays := map[string]string{}
	for name, nodes := range below(before) {
		for _, node := range nodes {
			if m := w.nodes[node]; m != nil && m.last != nil && slices.Equal(m.last, m.place()) {
				stays[name] = node
			}
		}
	}
	w.judge.stays = stays
	bed.Poll(t, 10*time.Second, "the account of the writes", func() error {
		all := w.changes()
		versions := map[string]string{}
		for _, c := range all {
			if versions[c.name] = c.after.UID; c.verb == "delete" {
				delete(versions, c.name)
			}
		}
		for name, hn := range w.hyperNodes(t) {
			if versions[name] != hn.UID {
				return fmt.Errorf("%s is not in it", name)
			}
		}
		return nil
	})
	for _, problem := range w.judge.take(w.changes()) {
		t.Error(problem)
	}
}

// explain logs what led to a failure.
func (w *world) explain(t *testing.T) {
	if t.Failed() {
		t.Logf("what was done:\n%s", strings.Join(w.said[max(0, len(w.said)-150):], "\n"))
	}
}

// seed is printed, so that a failure can be tried again with WEFT_SEED.
func seed(t *testing.T) uint64 {
	t.Helper()
	value := uint64(time.Now().UnixNano())
	if text := os.Getenv("WEFT_SEED"); text != "" {
		var err error
		if value, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("WEFT_SEED=%d", value)
	return value
}
