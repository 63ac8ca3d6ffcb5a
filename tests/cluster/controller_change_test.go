// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"weft.dev/weft/tests/cluster/bed"
)

// What a change costs, counted at the server: a join or a leave 1 write of a HyperNode, a move 2, and
// nothing for labels that go and come back, labels that mean nothing, and a restart.
func TestControllerWritesOfOneChange(t *testing.T) {
	t.Parallel()
	s := newSmall(t, 16)
	c := s.StartController(t, s.way, slowConfig)
	s.wait(t, 15*time.Second)
	for _, step := range []struct {
		name   string
		change func()
		writes int
	}{
		{"join", func() { s.add(t, "gpu-new", awsPlace(3)) }, 1},
		{"leave", func() { s.remove(t, "gpu-new") }, 1},
		{"move", func() { s.move(t, "gpu-000", 7) }, 2},
		{"all labels lost for a while", func() {
			lost := map[string]any{}
			for _, key := range awsKeys {
				lost[key] = nil
			}
			s.relabel(t, "gpu-001", lost)
			time.Sleep(2500 * time.Millisecond) // a pass sees it
			s.move(t, "gpu-001", 0)
		}, 0},
		{"a label that means nothing", func() { s.relabel(t, "gpu-002", map[string]any{"team": "b"}) }, 0},
		{"a restart", func() {
			c.Stop(t)
			c.Restart(t)
		}, 0},
	} {
		mark := s.mark()
		step.change()
		s.wait(t, 15*time.Second)
		s.still(t, 2500*time.Millisecond)
		if got := s.writes(mark, "hypernodes"); len(got) != step.writes {
			t.Errorf("%s: %q, want %d", step.name, got, step.writes)
		}
	}
	s.sound(t, 0)
	c.Stop(t)
}

// The autoscaler takes 100 Nodes down to 50: they are gone, so their places are, whatever the brakes
// say.
func TestControllerScaleDown(t *testing.T) {
	t.Parallel()
	s := newSmall(t, 100)
	c := s.StartController(t, s.way, slowConfig, "--label-rate", "1000")
	s.wait(t, 20*time.Second)
	mark := s.mark()
	for i := range 50 {
		s.remove(t, fmt.Sprintf("gpu-%03d", 2*i))
	}
	s.wait(t, 20*time.Second)
	s.sound(t, mark)
	if strings.Contains(c.Output(), "Refused") {
		t.Errorf("a change was refused\n%s", c.Tail(5))
	}
	// each of 8 leaves loses half of its Nodes: one write each, in one pass or two
	if n := len(s.writes(mark, "hypernodes")); n < 8 || n > 16 {
		t.Errorf("%d writes for 8 leaves: %q", n, s.writes(mark, "hypernodes"))
	}
	c.Stop(t)
}

// A fabric dump that forgets half of the hosts, which are still there: held, all keep their places.
func TestControllerFabricForgets(t *testing.T) {
	t.Parallel()
	s := newSmall(t, 0)
	dump := filepath.Join(bed.Dir(t), "topology.conf")
	write := func(hosts int) {
		var text strings.Builder
		for leaf := range 5 {
			var names []string
			for i := leaf * 4; i < leaf*4+4 && i < hosts; i++ {
				names = append(names, fmt.Sprintf("h%02d", i))
			}
			if len(names) > 0 {
				fmt.Fprintf(&text, "SwitchName=l%d Nodes=%s\n", leaf, strings.Join(names, ","))
			}
		}
		fmt.Fprintf(&text, "SwitchName=s0 Switches=l[0-%d]\n", (hosts-1)/4)
		if err := os.WriteFile(dump+".new", []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(dump+".new", dump); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 20 {
		s.add(t, fmt.Sprintf("h%02d", i), map[string]string{})
	}
	write(20)
	config := "apiVersion: weft.dev/v1alpha1\nkind: ControllerConfig\ntiers: [leaf, spine]\n" +
		"debounce: {quiet: 500ms, max: 5s}\nsources:\n- slurm: {conf: " + dump + ", interval: 1s}\n"
	c := s.StartController(t, s.way, config)
	complete := func() error {
		if n := len(s.hyperNodes(t)); n != 6 {
			return fmt.Errorf("%d HyperNodes\n%s", n, c.Tail(4))
		}
		for name := range s.fleet.nodes {
			if got := s.tierLabels(name); len(got) != 2 {
				return fmt.Errorf("%s is labelled %q", name, got)
			}
		}
		return nil
	}
	bed.Poll(t, 20*time.Second, "six HyperNodes and the labels of twenty Nodes", complete)
	before := s.hyperNodes(t)
	write(10)
	hash := refused(t, c)
	s.still(t, 4*time.Second)
	same := func(a, b bed.HyperNode) bool { return slices.Equal(a.Members, b.Members) }
	if !maps.EqualFunc(before, s.hyperNodes(t), same) {
		t.Errorf("places were taken away: %v", s.hyperNodes(t))
	}
	// it was a fault: it comes back, and nothing was written
	mark := s.mark()
	write(20)
	s.still(t, 4*time.Second)
	if got := s.writes(mark, "hypernodes"); len(got) > 0 {
		t.Errorf("%q", got)
	}
	// it was no fault: somebody says so, by the name that the same change had before
	write(10)
	s.accepts(t, hash)
	bed.Poll(t, 20*time.Second, "the forgotten hosts to go", func() error {
		if got := s.tierLabels("h15"); len(got) > 0 {
			return fmt.Errorf("%q", got)
		}
		return nil
	})
	s.sound(t, 0)
	c.Stop(t)
}

// A leader that is stopped for longer than its Lease lasts, with a change half written, and goes on
// when another one has led since: it writes nothing on what it knew.
func TestControllerLeaderStopped(t *testing.T) {
	t.Parallel()
	span := 20 * time.Second
	if os.Getenv("WEFT_LONG") != "" {
		span = 60 * time.Second
	}
	s := newSmall(t, 32)
	// brakes are in the way of the test: half of the Nodes move
	config := strings.Replace(slowConfig, "debounce:", "brakes: {lost: 100%, moved: 100%}\ndebounce:", 1)
	first := s.StartController(t, s.way, config)
	s.wait(t, 15*time.Second)
	second := s.StartController(t, s.NewWay(t), config)
	stopped := stopAtWrite(s.way, first)
	mark := s.mark()
	for i := range 16 {
		s.move(t, fmt.Sprintf("gpu-%03d", i), 7)
	}
	stopped(t)
	began := time.Now()
	s.wait(t, 40*time.Second) // the second carries it out
	if !strings.Contains(second.Output(), "event=leading") {
		t.Errorf("the second did not lead\n%s", second.Tail(3))
	}
	for i := range 16 { // and another change, of which the first knows nothing
		s.move(t, fmt.Sprintf("gpu-%03d", i), (i+1)%8)
	}
	s.wait(t, 20*time.Second)
	time.Sleep(max(0, span-time.Since(began)))
	before := s.mark()
	first.Signal(syscall.SIGCONT)
	s.still(t, 8*time.Second)
	if got := s.writes(before, "hypernodes"); len(got) > 0 {
		t.Errorf("after it went on: %q", got)
	}
	if err := s.right(t); err != nil {
		t.Error(err)
	}
	s.sound(t, mark)
}

// A write that arrives when another leads: the leader was stopped between its look at the Lease and
// the sending, or the network held the request up. The server refuses it, as the other has written.
func TestControllerLateWrites(t *testing.T) {
	t.Parallel()
	for name, what := range map[string]class{"HyperNode": aHyper, "labels": aNode} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSmall(t, 16)
			first := s.StartController(t, s.way, slowConfig)
			s.wait(t, 15*time.Second)
			second := s.StartController(t, s.NewWay(t), slowConfig)
			stopped, arrive := make(chan struct{}), make(chan struct{})
			var once sync.Once
			var asked, answered atomic.Int32
			s.way.Judge(func(r *http.Request) bed.Fault {
				if classOf(r) != what {
					return bed.Fault{}
				}
				body, _ := io.ReadAll(r.Body) // the whole request is under way then
				r.Body = io.NopCloser(bytes.NewReader(body))
				asked.Add(1)
				once.Do(func() {
					first.Signal(syscall.SIGSTOP)
					close(stopped)
				})
				<-arrive
				return bed.Fault{Sent: func() { answered.Add(1) }}
			})
			mark := s.mark()
			s.move(t, "gpu-000", 7)
			select {
			case <-stopped:
			case <-time.After(15 * time.Second):
				t.Fatal("no write came")
			}
			began := time.Now()
			first.Free(t)             // what waiting until the Lease has run out does
			s.wait(t, 25*time.Second) // the second carries it out
			s.move(t, "gpu-000", 3)
			s.wait(t, 15*time.Second)
			if !strings.Contains(second.Output(), "event=leading") {
				t.Fatalf("the second does not lead\n%s", second.Tail(3))
			}
			time.Sleep(max(0, 7*time.Second-time.Since(began))) // the first knows that its Lease is over by then
			before := s.mark()
			close(arrive)
			bed.Poll(t, 5*time.Second, "the late writes to be answered", func() error {
				if asked.Load() != answered.Load() {
					return fmt.Errorf("%d of %d", answered.Load(), asked.Load())
				}
				return nil
			})
			first.Signal(syscall.SIGCONT)
			s.still(t, 3*time.Second)
			if all := append(s.writes(before, "hypernodes"), s.writes(before, "nodes")...); len(all) > 0 {
				t.Errorf("late writes went through: %q", all)
			}
			if err := s.right(t); err != nil {
				t.Error(err)
			}
			s.sound(t, mark)
		})
	}
}

// A server that asks to be left alone for a while is, whatever ends meanwhile: here a label's write
// that meets a conflict, after which a pass is due at once.
func TestControllerRetryAfter(t *testing.T) {
	t.Parallel()
	s := newSmall(t, 16)
	s.StartController(t, s.way, slowConfig)
	s.wait(t, 15*time.Second)
	held, release := make(chan struct{}), make(chan struct{})
	asked := make(chan time.Time, 100) // of writes of HyperNodes from the second change on
	var once sync.Once
	s.way.Judge(func(r *http.Request) bed.Fault {
		switch classOf(r) {
		case aNode:
			once.Do(func() { close(held); <-release })
		case aHyper:
			select {
			case <-held:
			default:
				return bed.Fault{} // the first change's
			}
			asked <- time.Now()
			if len(asked) == 1 {
				return bed.Fault{Status: http.StatusTooManyRequests, Reason: "TooManyRequests", RetryAfter: 3}
			}
		}
		return bed.Fault{}
	})
	s.move(t, "gpu-000", 7)
	bed.Poll(t, 10*time.Second, "a label to be written", func() error {
		select {
		case <-held:
			return nil
		default:
			return fmt.Errorf("none")
		}
	})
	s.relabel(t, "gpu-000", map[string]any{"example.test/noise": "1"}) // the held write is for the version before
	s.move(t, "gpu-001", 7)
	bed.Poll(t, 10*time.Second, "the next write of a HyperNode", func() error {
		if len(asked) == 0 {
			return fmt.Errorf("none")
		}
		return nil
	})
	close(release)
	s.wait(t, 20*time.Second)
	first, second := <-asked, <-asked
	if waited := second.Sub(first); waited < 3*time.Second {
		t.Errorf("asked again after %v, the server wanted 3 s", waited)
	}
}

// Others' objects beside ours: for each conflict a defined outcome, no write of theirs, one event.
func TestControllerForeignConflicts(t *testing.T) {
	t.Parallel()
	s := newSmall(t, 16)
	s.makeHyperNode(t, "theirs", 1, map[string]any{"volcano.sh/network-topology-source": "label"}, bed.Member{Type: "Node", Name: "gpu-000"})
	c := s.StartController(t, s.way, slowConfig)
	bed.Poll(t, 15*time.Second, "all Nodes but the one that another has", func() error {
		for name := range s.fleet.nodes {
			if got := s.tierLabels(name); (len(got) == 3) != (name != "gpu-000") {
				return fmt.Errorf("%s is labelled %q", name, got)
			}
		}
		return nil
	})
	// another owner lists a leaf of ours: our spine lets go of it, as two parents stop the scheduler
	leaf := s.tierLabels("gpu-015")[0]
	s.makeHyperNode(t, "claims", 5, map[string]any{}, bed.Member{Type: "HyperNode", Name: leaf})
	bed.Poll(t, 10*time.Second, "our spine to let go of "+leaf, func() error {
		for name, hn := range s.hyperNodes(t) {
			if name != "claims" && slices.Contains(hn.Members, bed.Member{Type: "HyperNode", Name: leaf}) {
				return fmt.Errorf("%s lists it", name)
			}
		}
		return nil
	})
	s.still(t, 3*time.Second)
	for _, want := range []string{"ForeignNode", "ForeignChild"} {
		if n := strings.Count(c.Output(), "event="+want+" "); n != 1 {
			t.Errorf("%s is said %d times", want, n)
		}
		events := 0
		for _, object := range s.Objects("events") {
			if object["reason"] == want {
				events++
			}
		}
		if events != 1 {
			t.Errorf("%d events %s", events, want)
		}
	}
	for _, change := range s.changesOf(0, "hypernodes") {
		if (change.Name == "theirs" || change.Name == "claims") && change.User == bed.ControllerUser {
			t.Errorf("the controller wrote %s %s", change.Verb, change.Name)
		}
	}
	// they go: everything is ours again
	s.Do(t, http.MethodDelete, hyperNodePath+"/claims", nil)
	s.Do(t, http.MethodDelete, hyperNodePath+"/theirs", nil)
	s.wait(t, 15*time.Second)
	c.Stop(t)
}
