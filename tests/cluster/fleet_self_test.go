// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strings"
	"testing"

	"weft.dev/weft/tests/cluster/bed"
)

func nodesOf(names ...string) []bed.Member { return membersOf("Node", names) }

func membersOf(kind string, names []string) []bed.Member {
	var all []bed.Member
	for _, name := range names {
		all = append(all, bed.Member{Type: kind, Name: name})
	}
	return all
}

// A write that the server answered with 504 was done or not: what comes later tells.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	event := func(verb, version string, code int) bed.Event {
		body := fmt.Sprintf(`{"metadata":{"name":"a","resourceVersion":%q}}`, version)
		if verb == "delete" {
			body = fmt.Sprintf(`{"preconditions":{"resourceVersion":%q}}`, version)
		}
		e := bed.Event{Verb: verb, Body: []byte(body)}
		e.Object.Name, e.Response.Code = "a", code
		return e
	}
	for _, c := range []struct {
		what  string
		first bed.Event
		later []bed.Event
		end   string // its version at the end; "" = it is gone
		done  bool
	}{
		{"an update, and an update of what it made", event("update", "5", 504), []bed.Event{event("update", "6", 200)}, "7", true},
		{"an update, and the same again", event("update", "5", 504), []bed.Event{event("update", "5", 200)}, "6", false},
		{"an update, a conflict, and an update", event("update", "5", 504), []bed.Event{event("update", "5", 409), event("update", "6", 200)}, "7", true},
		{"an update, and a delete of what it made", event("update", "5", 504), []bed.Event{event("delete", "6", 200)}, "", true},
		{"an update, and a delete of what was", event("update", "5", 504), []bed.Event{event("delete", "5", 200)}, "", false},
		{"an update at the end", event("update", "5", 504), nil, "6", true},
		{"an update that was not done", event("update", "5", 504), nil, "5", false},
		{"a create, and an update", event("create", "", 504), []bed.Event{event("update", "4", 200)}, "5", true},
		{"a create, and a create", event("create", "", 504), []bed.Event{event("create", "", 201)}, "5", false},
		{"a create at the end", event("create", "", 504), nil, "4", true},
		{"a create that was not done", event("create", "", 504), nil, "", false},
		{"a delete, and a create", event("delete", "5", 504), []bed.Event{event("create", "", 201)}, "6", true},
		{"a delete, and a delete", event("delete", "5", 504), []bed.Event{event("delete", "5", 200)}, "", false},
		{"a delete at the end", event("delete", "5", 504), nil, "", true},
		{"what was refused", event("update", "5", 409), []bed.Event{event("update", "6", 200)}, "7", false},
	} {
		end := map[string]bed.HyperNode{}
		if c.end != "" {
			end["a"] = bed.HyperNode{Name: "a", ResourceVersion: c.end}
		}
		if got := outcomes(append([]bed.Event{c.first}, c.later...), end)[0]; got.OK() != c.done {
			t.Errorf("%s: done %v, want %v", c.what, got.OK(), c.done)
		}
	}
}

// The checks that the controller tests rest on see what they are there to see.
func TestSound(t *testing.T) {
	t.Parallel()
	good := func() map[string]bed.HyperNode {
		return map[string]bed.HyperNode{
			"a": {Name: "a", Tier: 1, Members: nodesOf("n1", "n2")},
			"b": {Name: "b", Tier: 1, Members: nodesOf("n3")},
			"s": {Name: "s", Tier: 2, Members: membersOf("HyperNode", []string{"a", "b"})},
		}
	}
	if err := sound(good()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what, says string
		change     func(map[string]bed.HyperNode)
	}{
		{"a node claimed before it is released", "n1 is listed by", func(s map[string]bed.HyperNode) {
			s["b"] = bed.HyperNode{Name: "b", Tier: 1, Members: nodesOf("n3", "n1")}
		}},
		{"a child deleted before its parent lets go", "exists: false", func(s map[string]bed.HyperNode) { delete(s, "b") }},
		{"two parents", "a is listed by", func(s map[string]bed.HyperNode) {
			s["s2"] = bed.HyperNode{Name: "s2", Tier: 2, Members: membersOf("HyperNode", []string{"a"})}
		}},
		{"a member twice in one", "n1 is listed by b and by b", func(s map[string]bed.HyperNode) {
			delete(s, "a")
			delete(s, "s")
			s["b"] = bed.HyperNode{Name: "b", Tier: 1, Members: nodesOf("n1", "n1")}
		}},
		{"a child of the same tier", "tier 1 lists a", func(s map[string]bed.HyperNode) {
			s["s"] = bed.HyperNode{Name: "s", Tier: 1, Members: membersOf("HyperNode", []string{"a", "b"})}
		}},
	} {
		state := good()
		c.change(state)
		if err := sound(state); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q in it", c.what, err, c.says)
		}
	}
}

// forestOf takes what is even and whole, and nothing else.
func TestForestOf(t *testing.T) {
	t.Parallel()
	mine := map[string]string{"volcano.sh/network-topology-source": "weft",
		"app.kubernetes.io/managed-by": "weft-controller", "app.kubernetes.io/instance": "weft"}
	good := func() map[string]bed.HyperNode {
		return map[string]bed.HyperNode{
			"a": {Name: "a", Tier: 1, Labels: mine, Members: nodesOf("n2", "n1")},
			"b": {Name: "b", Tier: 1, Labels: mine, Members: nodesOf("n3")},
			"s": {Name: "s", Tier: 2, Labels: mine, Members: membersOf("HyperNode", []string{"a", "b"})},
		}
	}
	f, err := forestOf(good(), 2)
	if err != nil || !f.groups[0]["n1 n2"] || !f.groups[0]["n3"] || !f.groups[1]["n1 n2 n3"] || f.labels["n3"][1] != "s" {
		t.Fatalf("%+v, %v", f, err)
	}
	for what, change := range map[string]func(map[string]bed.HyperNode){
		"a tier left out": func(s map[string]bed.HyperNode) {
			s["s"] = bed.HyperNode{Name: "s", Tier: 2, Labels: mine, Members: nodesOf("n4")}
		},
		"a node twice": func(s map[string]bed.HyperNode) {
			s["b"] = bed.HyperNode{Name: "b", Tier: 1, Labels: mine, Members: nodesOf("n3", "n1")}
		},
		"a tier too many": func(s map[string]bed.HyperNode) {
			s["x"] = bed.HyperNode{Name: "x", Tier: 3, Labels: mine, Members: membersOf("HyperNode", []string{"s"})}
		},
		"no exact name": func(s map[string]bed.HyperNode) {
			s["b"] = bed.HyperNode{Name: "b", Tier: 1, Labels: mine, Members: nodesOf("")}
		},
	} {
		state := good()
		change(state)
		if _, err := forestOf(state, 2); err == nil {
			t.Errorf("%s: taken", what)
		}
	}
}
