// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"weft.dev/weft/tests/cluster/bed"
)

// victim is a world whose controller is killed at each of its writes.
type victim struct {
	*world
	way     *bed.Proxy
	control *bed.Controller
	kills   int
	// weft's writes of Nodes so far; nil: they are not counted
	labelled func() int
}

// life lets the controller make one write, and kills it then: before the answer is on its way, or
// when it has been sent. It returns false if there was nothing to write.
func (v *victim) life(t *testing.T) bool {
	t.Helper()
	answered := v.random.IntN(2) == 0
	written, ready := make(chan struct{}), make(chan struct{})
	var mu sync.Mutex
	done, watches := false, 0 // the one write of this life; what it follows
	kill := func() {
		<-ready
		v.control.Kill()
		close(written)
	}
	v.way.Judge(func(r *http.Request) bed.Fault {
		mu.Lock()
		defer mu.Unlock()
		what := classOf(r)
		if what == aWatch || what == aBegun {
			watches++
		}
		if what != aHyper && what != aNode {
			return bed.Fault{}
		}
		if done {
			return bed.Fault{Cut: true}
		}
		done = true
		if answered {
			return bed.Fault{Sent: kill}
		}
		return bed.Fault{After: kill, Lose: true}
	})
	v.control.Restart(t)
	close(ready)
	bed.Poll(t, 30*time.Second, "a write, or the end of all writes", func() error {
		select {
		case <-written:
			return nil
		default:
		}
		mu.Lock()
		defer mu.Unlock()
		if done || watches < 2 {
			return fmt.Errorf("it has not come to that (written: %v, watches: %d)", done, watches)
		}
		return v.right(t)
	})
	select {
	case <-written:
	case <-time.After(250 * time.Millisecond): // right, and so it stays
		mu.Lock()
		wrote := done
		mu.Unlock()
		if !wrote {
			return false
		}
		<-written
	}
	v.kills++
	v.control.Crash(t)
	return true
}

// rearrange changes the topology while no controller runs.
func (v *victim) rearrange(t *testing.T) {
	t.Helper()
	for range 1 + v.random.IntN(6) {
		switch v.random.IntN(6) {
		case 0:
			v.count++
			v.join(t, fmt.Sprintf("gpu-%03d", v.count), awsPlace(v.random.IntN(8)))
		case 1:
			if name := v.some(anyNode); len(v.nodes) > 8 && name != "" {
				v.leave(t, name)
			}
		default:
			v.move(t)
		}
	}
	if v.random.IntN(3) == 0 { // a spine is cabled to the other core
		spine, core := fmt.Sprintf("nn-spine%04d", v.random.IntN(4)), fmt.Sprintf("nn-core%04d", v.random.IntN(2))
		for name, m := range v.nodes {
			if m.labels[awsKeys[1]] == spine && m.labels[awsKeys[2]] != core {
				v.relabel(t, name, map[string]string{awsKeys[2]: core})
			}
		}
	}
	for len(v.nodes) > 28 {
		v.leave(t, slices.Sorted(maps.Keys(v.nodes))[0])
	}
}

// tree is the groups of a topology: a path ("core/spine/leaf" and its beginnings) and what is in it.
type tree map[string]map[string]bool

func treeOf(nodes map[string]*spot, place func(*spot) []string) tree {
	all := tree{}
	add := func(path, member string) {
		if all[path] == nil {
			all[path] = map[string]bool{}
		}
		all[path][member] = true
	}
	for name, m := range nodes {
		path := slices.Clone(place(m))
		if path == nil {
			continue
		}
		slices.Reverse(path)
		for depth := range path {
			if depth+1 < len(path) {
				add(strings.Join(path[:depth+1], "/"), strings.Join(path[:depth+2], "/"))
			} else {
				add(strings.Join(path, "/"), name)
			}
		}
	}
	return all
}

// isPath tells a group from a Node.
func isPath(member string) bool { return strings.HasPrefix(member, "nn-") }

// bound is how many writes lead for sure from one tree to another without ever a second parent or a
// listed object that is gone: a group that is new is created, one that is gone deleted; of one that
// stays, what will be claimed elsewhere or deleted is released first and what is new claimed last,
// two writes if there is both; one that could keep nothing is itself deleted and made again. A plan
// that looks at the order of single moves may do with fewer.
func bound(from, to tree) int {
	writes := 0
	remade := map[string]bool{}
	paths := slices.SortedFunc(maps.Keys(from), func(a, b string) int { return strings.Count(b, "/") - strings.Count(a, "/") })
	claimed, held := map[string]string{}, map[string]bool{}
	for _, members := range from {
		for m := range members {
			held[m] = true
		}
	}
	for path, members := range to {
		for m := range members {
			claimed[m] = path
		}
	}
	for _, path := range paths { // leaves first: a parent must know which children are made again
		if to[path] == nil {
			writes++
			continue
		}
		var leaving, keeps, fresh, free int
		for m := range from[path] {
			elsewhere := claimed[m] != path && (isPath(m) || claimed[m] != "")
			switch {
			case elsewhere || remade[m]:
				leaving++
			default:
				keeps++
			}
		}
		for m := range to[path] {
			switch {
			case from[path][m] && !remade[m]:
			case !held[m] && !isPath(m):
				free++ // a Node that nobody lists may come with any write
			default:
				fresh++
			}
		}
		dropped := 0 // goes nowhere: released by whichever write there is
		for m := range from[path] {
			if !isPath(m) && claimed[m] == "" {
				dropped++
			}
		}
		switch {
		case leaving > 0 && keeps+free == 0:
			remade[path] = true
			writes += 2
		case leaving > 0 && fresh > 0:
			writes += 2
		case leaving+fresh+free+dropped > 0:
			writes++
		}
	}
	for path := range to {
		if from[path] == nil {
			writes++
		}
	}
	return writes
}

// planned is how many writes of HyperNodes one undisturbed life would make.
func (v *victim) planned(t *testing.T) int {
	t.Helper()
	v.way.Judge(nil)
	text := v.control.DryRun(t)
	found := regexp.MustCompile(`(?m)^(\d+) HyperNode writes?,`).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("--dry-run says\n%s", text)
	}
	count, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return count
}

// suffer lets one re-arrangement be carried out in as many lives as it has writes.
func (v *victim) suffer(t *testing.T) {
	t.Helper()
	before := v.hyperNodes(t)
	v.begin()
	from := treeOf(v.nodes, func(m *spot) []string { return m.last })
	v.rearrange(t)
	most := bound(from, treeOf(v.nodes, (*spot).place))
	want := v.planned(t)
	if want > most {
		t.Errorf("%d writes are planned, and %d are enough", want, most)
	}
	moved := 0 // Nodes whose labels must change
	for _, m := range v.nodes {
		if !slices.Equal(m.last, m.place()) {
			moved++
		}
	}
	written, labelled := v.judge.write, 0
	if v.labelled != nil {
		labelled = v.labelled()
	}
	lives := 1
	for v.life(t) {
		if lives++; lives > 400 {
			t.Fatal("the controller does not get anywhere")
		}
	}
	v.control.Crash(t)
	v.settled(t, before)
	if got := v.judge.write - written; got > want {
		t.Errorf("%d HyperNode writes over %d lives, %d in one", got, lives, want)
	}
	if v.labelled != nil {
		if got := v.labelled() - labelled; got != moved {
			t.Errorf("%d writes of Nodes over %d lives, want %d", got, lives, moved)
		}
	}
	v.say("---- right after %d lives, %d writes of HyperNodes planned, %d Nodes moved", lives, want, moved)
}

// prepare makes the first tree in one life and ends it.
func (v *victim) prepare(t *testing.T) {
	t.Helper()
	t.Cleanup(func() { v.explain(t) })
	for i := range 16 {
		v.count++
		v.join(t, fmt.Sprintf("gpu-%03d", v.count), awsPlace(i/2))
	}
	bed.Poll(t, 20*time.Second, "the first tree", func() error { return v.right(t) })
	v.control.Crash(t)
	v.settled(t, nil)
}

// kill -9 after each single write of random re-arrangements: each state in between is one that the
// scheduler lives with, and all lives together write no more than one life must.
func TestKillFake(t *testing.T) {
	t.Parallel()
	bed.Program(t, "weft-controller")
	base := seed(t)
	workers, each := 4, 5
	if isLong {
		workers, each = 10, 20
	}
	var group sync.WaitGroup
	for i := range workers {
		group.Go(func() {
			t.Run(fmt.Sprintf("world-%d", i), func(t *testing.T) {
				fake := bed.NewFake(t)
				fake.Protobuf = i%2 == 0
				v := &victim{world: onFake(fake, rand.New(rand.NewPCG(base, uint64(i)))), way: fake.NewWay(t)}
				v.labelled = func() int {
					count := 0
					for _, c := range fake.Changes(0) {
						if c.Resource == "nodes" && c.User == bed.ControllerUser {
							count++
						}
					}
					return count
				}
				v.control = fake.StartController(t, v.way, faultConfig, faultArgs...)
				v.prepare(t)
				for range each {
					if v.suffer(t); t.Failed() {
						return
					}
				}
				t.Logf("%d kills", v.kills)
			})
		})
	}
	group.Wait()
}

// The same on the real API server.
func TestKillReal(t *testing.T) {
	t.Parallel()
	if !isLong {
		t.Skip("part of make check-long; TestControllerKilled does it for one re-arrangement")
	}
	cp := bed.NewControlPlane(t)
	cp.InstallController(t)
	cp.InstallHyperNodes(t, false)
	v := &victim{world: onReal(t, cp, rand.New(rand.NewPCG(seed(t), 0))), way: bed.NewProxy(t, cp)}
	v.control = v.way.StartController(t, cp, faultConfig, faultArgs...)
	v.prepare(t)
	for v.kills < 300 && !t.Failed() {
		v.suffer(t)
	}
	t.Logf("%d kills", v.kills)
}
