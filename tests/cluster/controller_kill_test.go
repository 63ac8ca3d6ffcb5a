// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"weft.dev/weft/tests/cluster/bed"
)

// killAtEachWrite starts the controller again and again, and each time kills it at its first write:
// when the server has done it and before the answer arrives. What else is on its way then never
// arrives: the server could do it after the next life has looked at what there is. It returns after
// the first life that writes nothing, and leaves that controller running.
func (f *fleet) killAtEachWrite(t *testing.T, proxy *bed.Proxy, c *bed.Controller) int {
	t.Helper()
	for lives := 1; ; lives++ {
		killed := make(chan struct{})
		started := make(chan *bed.Process, 1)
		var first atomic.Bool
		proxy.Judge(func(r *http.Request) bed.Fault {
			switch {
			case !bed.IsWrite(r):
				return bed.Fault{}
			case !first.CompareAndSwap(false, true):
				return bed.Fault{Cut: true}
			}
			return bed.Fault{Lose: true, After: func() {
				(<-started).Kill()
				close(killed)
			}}
		})
		c.Restart(t)
		started <- c.Process
		f.awaitEnd(t, c, killed)
		select {
		case <-killed:
			c.Crash(t)
		default:
			proxy.Judge(nil)
			return lives
		}
		if lives > 200 {
			t.Fatal("the controller does not get anywhere")
		}
	}
}

// awaitEnd waits until the controller was killed, or leads and has nothing to write.
func (f *fleet) awaitEnd(t *testing.T, c *bed.Controller, killed chan struct{}) {
	t.Helper()
	select {
	case <-killed:
		return
	case <-time.After(200 * time.Millisecond):
	}
	bed.Poll(t, 30*time.Second, "a write, or the end of all writes", func() error {
		select {
		case <-killed:
			return nil
		default:
		}
		if err := c.Check(); err != nil {
			return err
		}
		return f.right(t)
	})
	select {
	case <-killed:
	case <-time.After(2 * time.Second): // right, and it stays so
	}
}

// The controller is killed at each of its writes in turn, while it builds the tree and then while
// a spine moves to another core: by sound steps it comes to the same end, and no write is done twice.
func TestControllerKilled(t *testing.T) {
	t.Parallel()
	f := newCluster(t, 8) // one node a leaf
	proxy := bed.NewProxy(t, f.cp)
	c := proxy.StartController(t, f.cp, freeConfig+"paused: true\n")
	c.Crash(t)
	bed.Write(t, c.Config, freeConfig)
	user := bed.HyperNodeWrites(bed.ControllerUser)

	mark := f.cp.Audit.Mark(t)
	lives := f.killAtEachWrite(t, proxy, c)
	f.still(t, 2*time.Second, bed.ControllerUser)
	writes := f.cp.Audit.Since(t, mark, user)
	replay(t, map[string]bed.HyperNode{}, writes)
	if len(writes) != 14 {
		t.Errorf("%d HyperNode writes over %d lives, want 14: %q", len(writes), lives, names(writes))
	}
	labelled := map[string]int{}
	for _, e := range f.cp.Audit.Since(t, mark, bed.Writes(bed.ControllerUser)) {
		if e.Object.Resource == "nodes" && e.OK() {
			labelled[e.Name()]++
		}
	}
	for node, n := range labelled {
		if n > 1 {
			t.Errorf("node %s was labelled %d times", node, n)
		}
	}

	state, mark := f.cp.HyperNodes(t), f.cp.Audit.Mark(t)
	c.Crash(t)
	for _, name := range []string{"gpu-002", "gpu-003"} {
		f.relabel(t, name, map[string]string{awsKeys[2]: "nn-core0001"})
	}
	lives = f.killAtEachWrite(t, proxy, c)
	f.still(t, 2*time.Second, bed.ControllerUser)
	writes = f.cp.Audit.Since(t, mark, user)
	replay(t, state, writes)
	t.Logf("a spine moved in %d lives: %q", lives, names(writes))

	mark = f.cp.Audit.Mark(t)
	c.Crash(t)
	c.Restart(t)
	f.adopted(t, c, mark)
}

// Changes without end, and kills in the middle of them.
func TestControllerChurn(t *testing.T) {
	t.Parallel()
	f := newCluster(t, 32)
	c := bed.StartController(t, f.cp, freeConfig)
	f.settle(t, 15*time.Second, bed.ControllerUser)
	state, mark := f.cp.HyperNodes(t), f.cp.Audit.Mark(t)

	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for round := range 12 * long(10) {
		for change := range 1 + random.IntN(6) {
			f.randomChange(t, random, fmt.Sprintf("gpu-r%d-%d", round, change))
		}
		if random.IntN(2) == 0 {
			time.Sleep(time.Duration(random.IntN(800)) * time.Millisecond) // somewhere in a debounce or a plan
			c.Crash(t)
			c.Restart(t)
		} else {
			f.wait(t, 20*time.Second)
		}
	}
	f.settle(t, 20*time.Second, bed.ControllerUser)
	writes := f.cp.Audit.Since(t, mark, bed.HyperNodeWrites(bed.ControllerUser))
	replay(t, state, outcomes(writes, f.cp.HyperNodes(t)))
	t.Logf("%d HyperNode writes", len(writes))
}

func (f *fleet) randomChange(t *testing.T, random *rand.Rand, fresh string) {
	t.Helper()
	all := slices.Sorted(mapKeys(f.nodes))
	name := all[random.IntN(len(all))]
	switch random.IntN(4) {
	case 0:
		f.add(t, fresh, awsPlace(random.IntN(8)))
	case 1:
		if len(all) > 8 {
			f.remove(t, name)
		}
	default:
		f.relabel(t, name, awsPlace(random.IntN(8)))
	}
}
