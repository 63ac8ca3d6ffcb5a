// SPDX-License-Identifier: Apache-2.0

package cluster

import (
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
