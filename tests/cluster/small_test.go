// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"weft.dev/weft/tests/cluster/bed"
	"weft.dev/weft/tests/cluster/bed/fakeapi"
)

// small is a fleet on an API server in memory: for what needs many restarts and little time.
type small struct {
	*bed.Fake
	way   *bed.Proxy
	fleet *fleet // its Nodes and what must come of them; no control plane
}

func newSmall(t *testing.T, count int) *small {
	t.Helper()
	fake := bed.NewFake(t)
	s := &small{Fake: fake, way: fake.NewWay(t), fleet: &fleet{keys: awsKeys, nodes: map[string]map[string]string{}}}
	for i := range count {
		s.add(t, fmt.Sprintf("gpu-%03d", i), place(i, count))
	}
	return s
}

func (s *small) add(t *testing.T, name string, labels map[string]string) {
	t.Helper()
	asAny := map[string]any{}
	for key, value := range labels {
		asAny[key] = value
	}
	s.Do(t, http.MethodPost, "/api/v1/nodes", fakeapi.Object{"apiVersion": "v1", "kind": "Node",
		"metadata": fakeapi.Object{"name": name, "labels": asAny}})
	s.fleet.nodes[name] = labels
}

// relabel changes labels of a Node; nil takes one away. What must come of it is the caller's to say.
func (s *small) relabel(t *testing.T, name string, labels map[string]any) {
	t.Helper()
	s.Do(t, http.MethodPatch, "/api/v1/nodes/"+name, fakeapi.Object{"metadata": fakeapi.Object{"labels": labels}})
}

// move changes a Node's place, which must then be its place.
func (s *small) move(t *testing.T, name string, leaf int) {
	t.Helper()
	change := map[string]any{}
	for key, value := range awsPlace(leaf) {
		change[key] = value
	}
	s.relabel(t, name, change)
	s.fleet.nodes[name] = awsPlace(leaf)
}

func (s *small) remove(t *testing.T, name string) {
	t.Helper()
	s.Do(t, http.MethodDelete, "/api/v1/nodes/"+name, nil)
	delete(s.fleet.nodes, name)
}

func parse(t testing.TB, object fakeapi.Object) bed.HyperNode {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	hn, err := bed.ParseHyperNode(text)
	if err != nil {
		t.Fatal(err)
	}
	return hn
}

func (s *small) hyperNodes(t testing.TB) map[string]bed.HyperNode {
	t.Helper()
	all := map[string]bed.HyperNode{}
	for name, object := range s.Objects("hypernodes") {
		all[name] = parse(t, object)
	}
	return all
}

// writes are those of the controller on a collection since a mark.
func (s *small) writes(mark int, plural string) []string {
	var all []string
	for _, change := range s.Changes(mark) {
		if change.Resource == plural && change.User == bed.ControllerUser {
			all = append(all, change.Verb+" "+change.Name)
		}
	}
	return all
}

func (s *small) mark() int { return len(s.Changes(0)) }

// sound checks the state after every single write since the mark, others' writes too.
func (s *small) sound(t *testing.T, mark int) {
	t.Helper()
	state := map[string]bed.HyperNode{}
	for i, change := range s.Changes(0) {
		if change.Resource != "hypernodes" {
			continue
		}
		if change.After == nil {
			delete(state, change.Name)
		} else {
			state[change.Name] = parse(t, change.After)
		}
		if err := sound(state); err != nil && i >= mark {
			t.Errorf("after change %d (%s %s by %s): %v", i, change.Verb, change.Name, change.User, err)
		}
	}
}

// right is nil if HyperNodes and labels are what the fleet's Nodes ask for.
func (s *small) right(t *testing.T) error {
	t.Helper()
	actual, err := forestOf(s.hyperNodes(t), len(s.fleet.keys))
	if err != nil {
		return err
	}
	for tier, want := range s.fleet.groups() {
		if !maps.Equal(actual.groups[tier], want) {
			return fmt.Errorf("tier %d\n got %v\nwant %v", tier+1, slices.Sorted(maps.Keys(actual.groups[tier])), slices.Sorted(maps.Keys(want)))
		}
	}
	for name := range s.fleet.nodes {
		if got, want := s.tierLabels(name), actual.labels[name]; !slices.Equal(got, want) {
			return fmt.Errorf("node %s has labels %q, want %q", name, got, want)
		}
	}
	return nil
}

// tierLabels are the Node's, tier 1 first.
func (s *small) tierLabels(node string) []string {
	meta, _ := s.Objects("nodes")[node]["metadata"].(map[string]any)
	labels, _ := meta["labels"].(map[string]any)
	var all []string
	for tier := 1; ; tier++ {
		value, ok := labels[fmt.Sprintf("weft.dev/tier-%d", tier)].(string)
		if !ok {
			return all
		}
		all = append(all, value)
	}
}

func (s *small) wait(t *testing.T, within time.Duration) {
	t.Helper()
	bed.Poll(t, within, "HyperNodes and labels as the nodes' labels ask for", func() error { return s.right(t) })
}

// still checks that the controller writes nothing but its Lease, and events, for a while.
func (s *small) still(t *testing.T, span time.Duration) {
	t.Helper()
	mark := s.mark()
	bed.Hold(t, span, "no more writes", func() error {
		if all := append(s.writes(mark, "hypernodes"), s.writes(mark, "nodes")...); len(all) > 0 {
			return fmt.Errorf("%q", all)
		}
		return nil
	})
}

var acceptHash = regexp.MustCompile("weftctl accept ([0-9a-f]{16})")

// refused waits until the controller says that it holds a change back, other than those known, and
// returns the hash.
func refused(t *testing.T, c *bed.Controller, known ...string) string {
	t.Helper()
	hash := ""
	bed.Poll(t, 10*time.Second, "a refused change", func() error {
		for _, found := range acceptHash.FindAllStringSubmatch(c.Output(), -1) {
			if !slices.Contains(known, found[1]) {
				hash = found[1]
				return nil
			}
		}
		return fmt.Errorf("no hash in\n%s", c.Tail(5))
	})
	return hash
}

// accepts runs weftctl accept.
func (s *small) accepts(t *testing.T, hash string) {
	t.Helper()
	if out, code := s.Ctl(t, s.way, "accept", hash); code != 0 || !strings.Contains(out, hash+" accepted") {
		t.Fatalf("weftctl accept %s: %d, %s", hash, code, out)
	}
}
