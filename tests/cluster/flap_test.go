// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"weft.dev/weft/tests/cluster/bed"
	"weft.dev/weft/tests/cluster/bed/fakeapi"
)

// pair is two controllers of one world, each with a way of its own.
type pair struct {
	*world
	fake     *bed.Fake
	ways     [2]*bed.Proxy
	controls [2]*bed.Controller
}

func newPair(t *testing.T) *pair {
	t.Helper()
	bed.Program(t, "weft-controller")
	fake := bed.NewFake(t)
	p := &pair{world: onFake(fake, rand.New(rand.NewPCG(seed(t), 0))), fake: fake}
	t.Cleanup(func() { p.explain(t) })
	for i := range p.ways {
		p.ways[i] = fake.NewWay(t)
		p.controls[i] = fake.StartController(t, p.ways[i], faultConfig, faultArgs...)
	}
	for i := range 16 {
		p.count++
		p.join(t, fmt.Sprintf("gpu-%03d", p.count), awsPlace(i/2))
	}
	p.converge(t)
	p.settled(t, nil)
	return p
}

func (p *pair) converge(t *testing.T) {
	t.Helper()
	bed.Poll(t, 60*time.Second, "the right end state", func() error {
		for _, c := range p.controls {
			if err := c.Check(); err != nil {
				return err
			}
		}
		return p.right(t)
	})
}

const leasePath = leasesPath + "/weft-controller"

// holder is the number of the controller that holds the Lease, -1 if none does.
func (p *pair) holder(t *testing.T) int {
	t.Helper()
	lease, err := p.ask("GET", leasePath, nil)
	if err != nil {
		return -1
	}
	id, _ := lease["spec"].(object)["holderIdentity"].(string)
	for i, c := range p.controls {
		if id != "" && strings.Contains(c.Output(), "event=leading identity="+id) {
			return i
		}
	}
	return -1
}

// steal gives the Lease to somebody who is not there, or to nobody.
func (p *pair) steal(t *testing.T) {
	t.Helper()
	lease, err := p.ask("GET", leasePath, nil)
	if err != nil {
		return
	}
	who := []string{"thief", ""}[p.random.IntN(2)]
	lease["spec"].(object)["holderIdentity"] = who
	lease["spec"].(object)["leaseDurationSeconds"] = float64(1)
	_, err = p.ask("PUT", leasePath, lease)
	p.say("the Lease goes to %q: %v", who, err)
}

// flaps makes the Lease's requests fail, late, or fruitless.
func flaps(random *rand.Rand) func(*http.Request) bed.Fault {
	var mu sync.Mutex
	return func(r *http.Request) bed.Fault {
		mu.Lock()
		defer mu.Unlock()
		if classOf(r) != aLease {
			return bed.Fault{Delay: time.Duration(random.IntN(30)) * time.Millisecond}
		}
		switch random.IntN(8) {
		case 0:
			return bed.Fault{Status: 500, Reason: "InternalError", Message: "made by the test"}
		case 1:
			return bed.Fault{Delay: time.Duration(random.IntN(5000)) * time.Millisecond}
		case 2:
			return bed.Fault{Lose: true}
		case 3:
			return bed.Fault{Cut: true}
		}
		return bed.Fault{}
	}
}

// Two controllers whose Lease fails, comes late, and is stolen from them, while the topology
// changes: no write of either harms, and in the end all is right.
func TestFlapLease(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	for i, way := range p.ways {
		way.Judge(flaps(rand.New(rand.NewPCG(p.random.Uint64(), uint64(i)))))
	}
	began := time.Now()
	for round := 0; time.Since(began) < 30*time.Second*time.Duration(long(10)); round++ {
		before := p.hyperNodes(t)
		p.begin()
		p.say("---- round %d", round)
		for range 1 + p.random.IntN(4) {
			p.move(t)
			p.one(t)
			if p.random.IntN(2) == 0 {
				p.steal(t)
			}
			time.Sleep(time.Duration(p.random.IntN(1000)) * time.Millisecond)
		}
		p.converge(t)
		p.settled(t, before)
		if t.Failed() {
			return
		}
	}
	for _, way := range p.ways {
		way.Judge(nil)
	}
	leads := 0
	for _, c := range p.controls {
		leads += strings.Count(c.Output(), "event=leading")
	}
	if leads < 3 {
		t.Errorf("the Lease changed hands %d times: the test proves too little", leads)
	}
	t.Logf("the Lease was taken %d times", leads)
}

// A leader that cannot renew its Lease any more, but can do all else, does not write once the other
// has it.
func TestFlapPartition(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	old := p.holder(t)
	if old < 0 {
		t.Fatal("nobody leads")
	}
	p.ways[old].Judge(func(r *http.Request) bed.Fault { return bed.Fault{Cut: classOf(r) == aLease} })
	p.judge.lags = true
	bed.Poll(t, 25*time.Second, "the other one leads", func() error {
		p.begin()
		p.move(t)
		time.Sleep(500 * time.Millisecond)
		p.settled(t, nil) // what stays is not known while the tree lags behind
		if now := p.holder(t); now != 1-old {
			return fmt.Errorf("%d holds the Lease", now)
		}
		return nil
	})
	p.converge(t)
	p.settled(t, nil)
	p.judge.lags = false
	p.after(t, old)
}

// after checks that what is written now is written by the other one.
func (p *pair) after(t *testing.T, old int) {
	t.Helper()
	log := len(p.controls[old].Output())
	for range 5 {
		before := p.hyperNodes(t)
		p.begin()
		p.move(t)
		p.one(t)
		p.converge(t)
		p.settled(t, before)
	}
	if text := p.controls[old].Output()[log:]; strings.Contains(text, `event="HyperNodes written" outcome=done`) {
		t.Errorf("the old leader wrote:\n%s", text)
	}
}

// stopAtWrite stops a controller when the server has done the next write of a HyperNode that comes by
// its way. It happens there, and not when a test sees the write, because a plan of a dozen writes may
// be over by then; like this the controller has no answer yet, so that what rests on the write is to
// come. What is returned waits for it.
func stopAtWrite(way *bed.Proxy, c *bed.Controller) func(testing.TB) {
	var once sync.Once
	stopped := make(chan struct{})
	way.Judge(func(r *http.Request) bed.Fault {
		if classOf(r) != aHyper {
			return bed.Fault{}
		}
		return bed.Fault{After: func() {
			once.Do(func() {
				c.Signal(syscall.SIGSTOP)
				close(stopped)
			})
		}}
	})
	return func(t testing.TB) {
		t.Helper()
		select {
		case <-stopped:
		case <-time.After(20 * time.Second):
			t.Fatal("no write came")
		}
	}
}

// A leader is stopped in the middle of a plan, when the server has done a write of it and the next
// one is to come. The other takes over and goes on; the first, continued, does no harm.
func TestFlapStopped(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	old := p.holder(t)
	if old < 0 {
		t.Fatal("nobody leads")
	}
	stopped := stopAtWrite(p.ways[old], p.controls[old])
	before := p.hyperNodes(t)
	p.begin()
	for range 4 {
		p.move(t)
	}
	stopped(t)
	began := time.Now()
	pause := 10 * time.Second
	if isLong {
		pause = 60 * time.Second
	} else { // what waiting until the Lease has run out does
		p.controls[old].Free(t)
	}
	bed.Poll(t, 25*time.Second, "the other one leads", func() error {
		if now := p.holder(t); now != 1-old {
			return fmt.Errorf("%d holds the Lease", now)
		}
		return nil
	})
	bed.Poll(t, 30*time.Second, "the right end state", func() error { return p.right(t) })
	p.settled(t, before)
	for time.Since(began) < pause {
		before = p.hyperNodes(t)
		p.begin()
		p.move(t)
		bed.Poll(t, 30*time.Second, "the right end state", func() error { return p.right(t) })
		p.settled(t, before)
		time.Sleep(time.Second)
	}
	// The world moves once more while the first one wakes up with its old plan.
	before = p.hyperNodes(t)
	p.begin()
	p.move(t)
	var asked atomic.Int32
	p.ways[old].Judge(func(r *http.Request) bed.Fault {
		if what := classOf(r); what == aHyper || what == aNode {
			asked.Add(1)
		}
		return bed.Fault{}
	})
	p.controls[old].Signal(syscall.SIGCONT)
	p.move(t)
	p.converge(t)
	p.settled(t, before)
	p.after(t, old)
	if n := asked.Load(); n > 0 {
		t.Errorf("the old leader asked for %d writes after it was continued", n)
	}
}

// The HyperNodes of a move take so long that the Lease's renewal is overdue when the labels' turn
// comes: they are written when it has come, although nothing else changes.
func TestFlapLabels(t *testing.T) {
	t.Parallel()
	bed.Program(t, "weft-controller")
	fake := bed.NewFake(t)
	w := onFake(fake, rand.New(rand.NewPCG(1, 0)))
	t.Cleanup(func() { w.explain(t) })
	way := fake.NewWay(t)
	fake.StartController(t, way, faultConfig, faultArgs...)
	for i := range 16 {
		w.join(t, fmt.Sprintf("gpu-%03d", i), awsPlace(i/2))
	}
	bed.Poll(t, 20*time.Second, "the first tree", func() error { return w.right(t) })
	var writes, cut atomic.Int32
	way.Judge(func(r *http.Request) bed.Fault {
		switch classOf(r) {
		case aHyper: // one release and one claim: 6.4 s, the fence is at 6 s
			writes.Add(1)
			return bed.Fault{Delay: 3200 * time.Millisecond}
		case aLease:
			if writes.Load() > 0 && cut.Add(1) <= 3 { // tried again every 2 s
				return bed.Fault{Cut: true}
			}
		}
		return bed.Fault{}
	})
	w.begin()
	w.relabel(t, "gpu-000", awsPlace(7))
	bed.Poll(t, 10*time.Second, "HyperNodes and labels after a late renewal", func() error { return w.right(t) })
	if writes.Load() != 2 || cut.Load() < 3 {
		t.Errorf("%d writes of HyperNodes, %d requests of the Lease: the test proves little", writes.Load(), cut.Load())
	}
}

// Nodes that beat and Leases that are renewed are no reason to write anything else.
func TestFlapQuiet(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	mark := len(p.fake.Changes(0))
	bed.Poll(t, 20*time.Second, "the end of what is written about the start", func() error {
		began := mark
		time.Sleep(2 * time.Second)
		mark = len(p.fake.Changes(0))
		for _, c := range p.fake.Changes(began) {
			if c.Resource != "leases" {
				return fmt.Errorf("%s of %s %s", c.Verb, c.Resource, c.Name)
			}
		}
		return nil
	})
	end := time.Now().Add(30 * time.Second)
	beats := 0
	for time.Now().Before(end) {
		for name := range p.nodes {
			p.must(t, "PATCH", "/api/v1/nodes/"+name+"/status", object{"status": object{"beat": fmt.Sprint(beats)}})
			beats++
		}
		time.Sleep(500 * time.Millisecond)
	}
	var other []fakeapi.Change
	leases := 0
	for _, c := range p.fake.Changes(mark) {
		switch {
		case c.User != bed.ControllerUser:
		case c.Resource == "leases":
			leases++
		default:
			other = append(other, c)
		}
	}
	for _, c := range other {
		t.Errorf("%s of %s %s after %d beats", c.Verb, c.Resource, c.Name, beats)
	}
	if leases < 5 || leases > 10 { // every 4 to 5 s
		t.Errorf("the Lease was written %d times in 30 s", leases)
	}
}
