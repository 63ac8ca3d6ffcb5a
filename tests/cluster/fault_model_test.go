// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"weft.dev/weft/tests/cluster/bed"
)

// What Volcano's scheduler cannot live with, or places wrongly by, in the HyperNodes that exist. It
// is written from what the scheduler does, not from weft's model of it: a HyperNode with two
// parents or a cycle makes the whole tree not ready, one that is listed but gone is a nil pointer in
// the next session, a parent of no higher tier and a node in two leaves are looked up at random.
func violations(state map[string]bed.HyperNode) map[string]bool {
	found := map[string]bool{}
	parents := map[bed.Member][]string{}
	tiers := map[string]int64{}
	for _, name := range slices.Sorted(maps.Keys(state)) {
		hn := state[name]
		if hn.Tier < 1 {
			found[fmt.Sprintf("%s has tier %d", name, hn.Tier)] = true
		}
		if len(name) > 63 {
			found[name+" has too long a name to be listed"] = true
		}
		if tier, there := tiers[hn.TierName]; there && hn.TierName != "" && tier != hn.Tier {
			found[fmt.Sprintf("%s is tier %d and tier %d", hn.TierName, tier, hn.Tier)] = true
		}
		tiers[hn.TierName] = hn.Tier
		for _, m := range hn.Members {
			parents[m] = append(parents[m], name)
			if why := badMember(state, hn, m); why != "" {
				found[why] = true
			}
		}
	}
	for m, listed := range parents {
		if len(listed) > 1 {
			found[fmt.Sprintf("%s %s is listed by %s", m.Type, m.Name, strings.Join(listed, " and "))] = true
		}
	}
	for name := range state {
		if cyclic(parents, name) {
			found[name+" is below itself"] = true
		}
	}
	return found
}

func badMember(state map[string]bed.HyperNode, hn bed.HyperNode, m bed.Member) string {
	if m.Name == "" {
		return hn.Name + " has a member without an exact name"
	}
	if m.Type != "HyperNode" {
		return ""
	}
	child, exists := state[m.Name]
	switch {
	case !exists:
		return fmt.Sprintf("%s lists %s, which does not exist", hn.Name, m.Name)
	case child.Tier >= hn.Tier:
		return fmt.Sprintf("%s of tier %d lists %s of tier %d", hn.Name, hn.Tier, m.Name, child.Tier)
	}
	return ""
}

func cyclic(parents map[bed.Member][]string, start string) bool {
	seen, next := map[string]bool{}, parents[bed.Member{Type: "HyperNode", Name: start}]
	for len(next) > 0 {
		name := next[0]
		next = next[1:]
		if name == start {
			return true
		}
		if !seen[name] {
			seen[name] = true
			next = append(next, parents[bed.Member{Type: "HyperNode", Name: name}]...)
		}
	}
	return false
}

// change is one write of a HyperNode, in the order in which the server did them.
type change struct {
	verb    string // create, update, delete
	name    string
	version string // of the object after it
	after   bed.HyperNode
	byHand  bool // by the test rather than by weft
}

func (c change) String() string {
	who := "weft"
	if c.byHand {
		who = "the test"
	}
	return fmt.Sprintf("%s of %s by %s (version %s): tier %d %v", c.verb, c.name, who, c.version, c.after.Tier, c.after.Members)
}

// judge follows the writes of HyperNodes and finds what weft must not do. Its zero value is for a
// server without HyperNodes.
type judge struct {
	lags  bool // what is written may be of a round before, so that a Node may move twice
	state map[string]bed.HyperNode
	bad   map[string]bool  // violations that there are now: of the test's making
	tiers map[string]int64 // of every name that weft ever used
	seen  int              // changes so far
	write int              // weft's writes so far that changed a spec
	// Deleted by hand and not made again: weft may list them until it has heard of that.
	missing map[string]bool
	// In which leaves weft has put a Node since the last round: one move is one leaf.
	put map[string][]string
	// The Nodes below a HyperNode that have stayed where they are: it must not be deleted.
	stays map[string]string
}

// take judges the changes that are new among all, and returns what is wrong with them.
func (j *judge) take(all []change) []error {
	var problems []error
	if j.state == nil {
		j.state, j.bad, j.tiers = map[string]bed.HyperNode{}, map[string]bool{}, map[string]int64{}
		j.missing = map[string]bool{}
	}
	j.put = map[string][]string{}
	for ; j.seen < len(all); j.seen++ {
		c := all[j.seen]
		before := j.state[c.name]
		if c.verb == "delete" {
			delete(j.state, c.name)
			j.missing[c.name] = c.byHand
		} else {
			j.state[c.name] = c.after
			j.missing[c.name] = false
		}
		now := violations(j.state)
		if !c.byHand {
			j.write++
			problems = append(problems, j.moves(c, before)...)
			for _, why := range append(j.rules(c, before), j.newIn(now)...) {
				problems = append(problems, fmt.Errorf("change %d, %v: %s", j.seen, c, why))
			}
		}
		j.bad = now
	}
	return problems
}

// moves notes which Nodes come into a leaf. In a round each Node moves once at most: one that is put
// into two leaves was moved because of something old.
func (j *judge) moves(c change, before bed.HyperNode) []error {
	var problems []error
	for _, m := range c.after.Members {
		if c.verb == "delete" || m.Type != "Node" || slices.Contains(before.Members, m) || slices.Contains(j.put[m.Name], c.name) {
			continue
		}
		if j.put[m.Name] = append(j.put[m.Name], c.name); len(j.put[m.Name]) > 1 && !j.lags {
			problems = append(problems, fmt.Errorf("change %d, %v: %s was moved about: %v", j.seen, c, m.Name, j.put[m.Name]))
		}
	}
	return problems
}

// newIn are the violations that were not there before.
func (j *judge) newIn(now map[string]bool) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(now)), func(what string) bool {
		if lists, dangling := strings.CutSuffix(what, ", which does not exist"); dangling {
			_, name, _ := strings.Cut(lists, " lists ")
			return j.bad[what] || j.missing[name]
		}
		return j.bad[what]
	})
}

// rules are those of a single write by weft.
func (j *judge) rules(c change, before bed.HyperNode) []string {
	var broken []string
	touched := before
	if c.verb == "create" {
		touched = c.after
	}
	if !ours(touched) {
		broken = append(broken, "it is not weft's")
	}
	if c.verb == "delete" {
		if node := j.stays[c.name]; node != "" {
			broken = append(broken, "a wrong delete: "+node+" below it has not moved")
		}
		return broken
	}
	if tier, known := j.tiers[c.name]; known && tier != c.after.Tier {
		broken = append(broken, fmt.Sprintf("the name was tier %d", tier))
	}
	j.tiers[c.name] = c.after.Tier
	if len(c.after.Members) == 0 {
		broken = append(broken, "it has no member")
	}
	for _, m := range c.after.Members {
		if (m.Type == "Node") != (c.after.Tier == 1) {
			broken = append(broken, fmt.Sprintf("%s %s in tier %d", m.Type, m.Name, c.after.Tier))
		}
	}
	return broken
}

// below are the nodes below each HyperNode.
func below(state map[string]bed.HyperNode) map[string][]string {
	found := map[string][]string{}
	for _, hn := range slices.SortedFunc(maps.Values(state), func(a, b bed.HyperNode) int { return int(a.Tier - b.Tier) }) {
		for _, m := range hn.Members {
			if m.Type == "Node" {
				found[hn.Name] = append(found[hn.Name], m.Name)
			} else {
				found[hn.Name] = append(found[hn.Name], found[m.Name]...)
			}
		}
	}
	return found
}

// The judge sees what it is there to see.
func TestFaultJudge(t *testing.T) {
	t.Parallel()
	mine := map[string]string{"volcano.sh/network-topology-source": "weft",
		"app.kubernetes.io/managed-by": "weft-controller", "app.kubernetes.io/instance": "weft"}
	hn := func(name string, tier int64, members ...bed.Member) bed.HyperNode {
		return bed.HyperNode{Name: name, Tier: tier, TierName: tierNames[(tier+2)%3], Labels: mine, Members: members}
	}
	made := func(h bed.HyperNode) change { return change{verb: "create", name: h.Name, after: h} }
	put := func(h bed.HyperNode) change { return change{verb: "update", name: h.Name, after: h} }
	a, b := hn("a", 1, nodesOf("n1", "n2")...), hn("b", 1, nodesOf("n3")...)
	s := hn("s", 2, membersOf("HyperNode", []string{"a", "b"})...)
	stranger := bed.HyperNode{Name: "x", Tier: 1, Members: nodesOf("n9")}
	wrongTier := hn("s", 1, membersOf("HyperNode", []string{"a"})...)
	loop := hn("a", 1, membersOf("HyperNode", []string{"s"})...)
	for _, c := range []struct {
		what string
		does change
		says string
	}{
		{"an honest write", put(hn("b", 1, nodesOf("n3", "n4")...)), ""},
		{"a node in two leaves", put(hn("b", 1, nodesOf("n3", "n1")...)), "Node n1 is listed by a and b"},
		{"two parents", made(hn("s2", 2, membersOf("HyperNode", []string{"a"})...)), "HyperNode a is listed by s and s2"},
		{"a member twice", put(hn("b", 1, nodesOf("n3", "n3")...)), "Node n3 is listed by b and b"},
		{"a listed one deleted", change{verb: "delete", name: "b"}, "s lists b, which does not exist"},
		{"a parent before its child", made(hn("s2", 2, membersOf("HyperNode", []string{"c"})...)), "s2 lists c, which does not exist"},
		{"a cycle", put(loop), "a is below itself"},
		{"a tier that does not rise", put(wrongTier), "s of tier 1 lists a of tier 1"},
		{"a tier that changes", put(hn("b", 2, nodesOf("n3")...)), "the name was tier 1"},
		{"a tier below 1", made(hn("c", 0, nodesOf("n5")...)), "c has tier 0"},
		{"a tier's name twice", made(bed.HyperNode{Name: "c", Tier: 3, TierName: "leaf", Labels: mine, Members: nodesOf("n5")}), "leaf is tier"},
		{"no member", put(hn("b", 1)), "it has no member"},
		{"no exact name", put(hn("b", 1, bed.Member{Type: "Node"})), "without an exact name"},
		{"a node above tier 1", put(hn("s", 2, nodesOf("n7")...)), "Node n7 in tier 2"},
		{"another's object", put(stranger), "it is not weft's"},
		{"another's object deleted", change{verb: "delete", name: "x"}, "it is not weft's"},
		{"a wrong delete", change{verb: "delete", name: "s"}, "a wrong delete: n1"},
		{"a node that is moved about", made(hn("c", 1, nodesOf("n1")...)), "n1 was moved about: [a c]"},
		{"the same by hand", change{verb: "delete", name: "b", byHand: true}, ""},
	} {
		j := judge{}
		byHand := made(stranger)
		byHand.byHand = true
		all := []change{made(a), made(b), made(s), byHand}
		if problems := j.take(all); len(problems) > 0 {
			t.Fatal(problems)
		}
		j.stays = map[string]string{"s": "n1"}
		if strings.Contains(c.what, "moved about") {
			j = judge{}
		}
		problems := j.take(append(all, c.does))
		if all := fmt.Sprint(problems); (c.says == "") != (len(problems) == 0) || !strings.Contains(all, c.says) {
			t.Errorf("%s: %s, want %q in it", c.what, all, c.says)
		}
	}
}
