// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"weft.dev/weft/tests/cluster/bed"
)

// faultConfig is freeConfig with everything soon.
var faultConfig = strings.Replace(freeConfig, "{quiet: 200ms, max: 1s}", "{quiet: 50ms, max: 300ms}", 1)

var faultArgs = []string{"--label-rate", "1000", "--watch-idle", "3s"}

// class is what a request is for, as far as faults tell requests apart.
type class string

const (
	aList  class = "list"
	aPage  class = "page"
	aBegun class = "watch that begins with the list"
	aWatch class = "watch"
	aRead  class = "read"
	aLease class = "lease"
	aHyper class = "write of a HyperNode"
	aNode  class = "write of a Node"
	other  class = "other"
)

func classOf(r *http.Request) class {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	last := parts[len(parts)-1]
	query := r.URL.Query()
	switch {
	case strings.Contains(r.URL.Path, "/leases"):
		return aLease
	case bed.IsWatch(r) && query.Get("sendInitialEvents") == "true":
		return aBegun
	case bed.IsWatch(r):
		return aWatch
	case r.Method == http.MethodGet && query.Get("continue") != "":
		return aPage
	case r.Method == http.MethodGet && (last == "nodes" || last == "hypernodes"):
		return aList
	case r.Method == http.MethodGet:
		return aRead
	case strings.Contains(r.URL.Path, "/hypernodes"):
		return aHyper
	case strings.HasPrefix(r.URL.Path, "/api/v1/nodes"):
		return aNode
	}
	return other
}

// faultKind is one way in which things go wrong.
type faultKind struct {
	name  string
	on    []class
	make  func(*rand.Rand) bed.Fault
	once  bool // costs too much time to have it twice in a round
	prime bool // ends the watches, so that there are requests of these classes
	lists bool // makes the watches list again, for the same reason
}

var (
	lists   = []class{aList, aPage, aBegun}
	watches = []class{aWatch, aBegun}
	writes  = []class{aHyper, aNode}
	anyCall = []class{aList, aPage, aBegun, aWatch, aRead, aHyper, aNode, other}
)

func always(fault bed.Fault) func(*rand.Rand) bed.Fault {
	return func(*rand.Rand) bed.Fault { return fault }
}

func refusal(status int, reason, message string, after int) func(*rand.Rand) bed.Fault {
	return always(bed.Fault{Status: status, Reason: reason, Message: message, RetryAfter: after})
}

const (
	denies = `admission webhook "validatehypernode.volcano.sh" denied the request: made by the test`
	fails  = `Internal error occurred: failed calling webhook "validatehypernode.volcano.sh": failed to call webhook: Post "https://volcano-admission-service.volcano-system.svc:443/hypernodes/validate?timeout=10s": dial tcp 10.0.0.7:443: connect: connection refused`
)

var faultKinds = []faultKind{
	{name: "cut", on: anyCall, make: always(bed.Fault{Cut: true}), prime: true},
	{name: "cut of a write", on: writes, make: always(bed.Fault{Cut: true})},
	{name: "hangup", on: anyCall, make: always(bed.Fault{Hangup: true}), prime: true},
	{name: "delay", on: anyCall, prime: true, make: func(r *rand.Rand) bed.Fault {
		return bed.Fault{Delay: time.Duration(50+r.IntN(400)) * time.Millisecond}
	}},
	{name: "half a list", on: lists, make: always(bed.Fault{Half: true}), prime: true, lists: true},
	{name: "half a watch", on: watches, make: always(bed.Fault{Half: true}), prime: true},
	{name: "half an answer", on: writes, make: always(bed.Fault{Half: true})},
	{name: "answer lost", on: writes, make: always(bed.Fault{Lose: true})},
	{name: "410 list", on: []class{aList, aBegun}, make: refusal(410, "Expired", "too old resource version", 0), prime: true, lists: true},
	{name: "410 page", on: []class{aPage}, make: refusal(410, "Expired", "The provided continue parameter is too old", 0), prime: true, lists: true},
	{name: "410 watch", on: []class{aWatch}, make: refusal(410, "Expired", "too old resource version", 0), prime: true},
	{name: "410 in a watch", on: watches, make: always(bed.Fault{Gone: true}), prime: true},
	{name: "429", on: anyCall, make: refusal(429, "TooManyRequests", "too many requests, please try again later", 1), prime: true},
	{name: "429 for a write", on: writes, make: refusal(429, "TooManyRequests", "too many requests, please try again later", 3)},
	{name: "500", on: anyCall, make: refusal(500, "InternalError", "made by the test", 0), prime: true},
	{name: "503", on: anyCall, make: refusal(503, "", "", 0), prime: true},
	{name: "tls"}, // of handshakes rather than of requests
	{name: "silent watch", on: watches, make: always(bed.Fault{Silent: true}), prime: true},
	{name: "rewinding watch", on: watches, make: always(bed.Fault{Rewind: true}), prime: true},
	{name: "short watch", on: watches, prime: true, make: func(r *rand.Rand) bed.Fault {
		return bed.Fault{Life: time.Duration(1+r.IntN(500)) * time.Millisecond}
	}},
	{name: "webhook denies", on: []class{aHyper}, make: refusal(403, "Forbidden", denies, 0), once: true},
	{name: "webhook fails", on: []class{aHyper}, make: refusal(500, "InternalError", fails, 0), once: true},
	{name: "lease refused", on: []class{aLease}, make: refusal(500, "InternalError", "made by the test", 0)},
	{name: "lease delayed", on: []class{aLease}, make: func(r *rand.Rand) bed.Fault {
		return bed.Fault{Delay: time.Duration(500+r.IntN(2000)) * time.Millisecond}
	}},
}

// schedule is a world, a controller that follows it, and the way between them.
type schedule struct {
	*world
	way     *bed.Proxy
	control *bed.Controller
	tally   *tally
	streams bool // lists come as the beginning of a watch, so there are no pages
	rounds  int
	notes   sync.Mutex
	noted   []string
}

func (s *schedule) note(text string) {
	s.notes.Lock()
	defer s.notes.Unlock()
	s.noted = append(s.noted, time.Now().Format("15:04:05.000 ")+text)
}

// round is one schedule of faults over one change of the topology: kind happens, and perhaps others.
func (s *schedule) round(t *testing.T, kind int) {
	t.Helper()
	before := s.hyperNodes(t)
	s.begin()
	m := &mischief{random: rand.New(rand.NewPCG(s.random.Uint64(), 0)), tally: s.tally, say: s.note,
		gone: map[string]bool{}, waits: map[string]wait{}}
	m.active = append(m.active, newActive(s.random, kind, 1))
	for range s.random.IntN(1 + long(2)) {
		k := newActive(s.random, s.random.IntN(len(faultKinds)), 0.3+0.7*s.random.Float64())
		if os.Getenv("WEFT_FAULT") == "" && (isLong || !k.once) {
			m.active = append(m.active, k)
		}
	}
	s.say("---- round %d: %s", s.rounds, namesOf(m.active))
	s.rounds++
	began := time.Now()
	s.arm(m)
	// A Node joins and one moves, so that there is something to write; and what chance brings.
	s.count++
	s.join(t, fmt.Sprintf("gpu-%03d", s.count), awsPlace(s.random.IntN(8)))
	s.move(t)
	for range s.random.IntN(5) {
		if s.random.IntN(3) == 0 {
			time.Sleep(time.Duration(s.random.IntN(200)) * time.Millisecond)
		}
		s.one(t)
	}
	if s.random.IntN(10) == 0 {
		time.Sleep(time.Duration(s.random.IntN(400)) * time.Millisecond)
		s.say("kill -9")
		s.control.Crash(t)
		m.mu.Lock()
		m.waits, m.unread = map[string]wait{}, "" // the dead have forgotten it
		m.mu.Unlock()
		s.control.Restart(t)
	}
	if len(s.nodes) > 24 {
		s.leave(t, s.some(anyNode))
	}
	s.converge(t)
	if s.provoke(m) {
		s.converge(t)
	}
	s.way.Judge(nil)
	s.way.MendTLS()
	s.settled(t, before)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, what := range m.broken {
		t.Error(what)
	}
	if took := time.Since(began); took > 12*time.Second {
		t.Logf("round %d took %v: %s; %q", s.rounds-1, took.Round(time.Second), namesOf(m.active), s.control.Tail(12))
	}
	s.say("---- right")
}

func (s *schedule) converge(t *testing.T) {
	t.Helper()
	bed.Poll(t, 40*time.Second, "the right end state", func() error {
		if err := s.control.Check(); err != nil {
			return err
		}
		return s.right(t)
	})
}

func namesOf(active []*activeKind) string {
	var all []string
	for _, k := range active {
		all = append(all, k.name)
	}
	return strings.Join(all, ", ")
}

// arm lets the faults of a round loose and brings about the requests that they are for.
func (s *schedule) arm(m *mischief) {
	s.way.Judge(m.judge)
	for _, k := range m.active {
		if k.name != "tls" {
			continue
		}
		var how []bed.BrokenTLS
		for range k.left {
			how = append(how, bed.BrokenTLS(m.random.IntN(3)))
			s.tally.add("tls")
		}
		s.note(fmt.Sprintf("handshakes fail: %v", how))
		s.way.BreakTLS(how...)
		m.hungUp()
	}
	s.prime(m)
}

// provoke gives the round's own fault some time to happen, and says whether it did so only then. A
// round in which it never found its request is no failure: the tally says what happened too seldom.
func (s *schedule) provoke(m *mischief) bool {
	if m.happened() == nil {
		return false
	}
	for range 10 {
		s.prime(m)
		for range 30 {
			time.Sleep(50 * time.Millisecond)
			if m.happened() == nil {
				return true
			}
		}
	}
	s.say("%v", m.happened())
	return false
}

func (s *schedule) prime(m *mischief) {
	prime := false
	m.mu.Lock()
	if k := m.active[0]; k.hits == 0 {
		k.left = max(k.left, 1) // a watch that was to be spoiled may have ended before
	}
	for _, k := range m.active {
		prime = prime || k.prime && k.hits == 0
		if k.lists && k.hits == 0 {
			m.relists = 2
		}
	}
	m.mu.Unlock()
	if prime {
		s.way.EndWatches()
	}
}

// run makes rounds, the kinds of faults in turn.
func (s *schedule) run(t *testing.T, first, rounds int) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			s.said = append(s.said, s.noted...)
			slices.SortStableFunc(s.said, func(a, b string) int { return strings.Compare(a[:12], b[:12]) })
			s.explain(t)
		}
	})
	for i := range 16 {
		s.count++
		s.join(t, fmt.Sprintf("gpu-%03d", s.count), awsPlace(i/2))
	}
	bed.Poll(t, 20*time.Second, "the first tree", func() error { return s.right(t) })
	s.settled(t, nil)
	only := slices.IndexFunc(faultKinds, func(k faultKind) bool { return k.name == os.Getenv("WEFT_FAULT") })
	for i := range rounds {
		kind := (first + i) % len(faultKinds)
		if only >= 0 {
			kind = only
		}
		if s.streams && faultKinds[kind].name == "410 page" {
			kind++
		}
		s.round(t, kind)
		if t.Failed() {
			return
		}
	}
	s.still(t, time.Second)
}

// still checks that weft writes no HyperNode for a while.
func (s *schedule) still(t *testing.T, span time.Duration) {
	t.Helper()
	mark := len(s.changes())
	bed.Hold(t, span, "no more writes", func() error {
		if all := s.changes(); len(all) > mark {
			return fmt.Errorf("%v", all[mark:])
		}
		return nil
	})
}

// beat keeps the watches busy until the test's end: the server's own bookmarks come once a minute,
// and the tests cannot wait for a silence that is longer than that.
func (s *schedule) beat(t *testing.T) {
	t.Helper()
	s.must(t, "POST", "/api/v1/nodes", object{"apiVersion": "v1", "kind": "Node", "metadata": object{"name": "beat"}})
	s.stranger(t, "beat")
	go func() {
		for count := 0; t.Context().Err() == nil; count++ {
			time.Sleep(700 * time.Millisecond)
			_, _ = s.ask("PATCH", "/api/v1/nodes/beat", object{"metadata": object{"annotations": object{"example.test/beat": fmt.Sprint(count)}}})
			_, _ = s.ask("PATCH", hyperNodesPath+"/beat/status", object{"status": object{"nodeCount": float64(count)}})
		}
	}()
}

// Fault schedules over changes of the topology, on the fake: in the end all is right, after no
// single write was anything wrong, and nothing was deleted that is still there. Half of the fakes
// speak protobuf, half JSON only.
func TestFaultSchedulesFake(t *testing.T) {
	t.Parallel()
	bed.Program(t, "weft-controller")
	base, counts := seed(t), &tally{hits: map[string]int{}}
	worlds, rounds, least := 12, 4, 1
	if isLong {
		worlds, rounds, least = 24, 86, 20
	}
	var group sync.WaitGroup
	for i := range worlds {
		group.Go(func() {
			t.Run(fmt.Sprintf("world-%d", i), func(t *testing.T) {
				fake := bed.NewFake(t)
				fake.Protobuf = i%2 == 0
				fake.WatchList = i%3 == 0
				s := &schedule{world: onFake(fake, rand.New(rand.NewPCG(base, uint64(i)))), way: fake.NewWay(t), tally: counts,
					streams: fake.WatchList}
				s.way.Page(5)
				s.control = fake.StartController(t, s.way, faultConfig, faultArgs...)
				s.run(t, i*rounds, rounds)
			})
		})
	}
	group.Wait()
	counts.check(t, least)
}

// The same on the real API server.
func TestFaultSchedulesReal(t *testing.T) {
	t.Parallel()
	bed.Program(t, "weft-controller")
	base, counts := seed(t), &tally{hits: map[string]int{}}
	worlds, rounds, least := 1, len(faultKinds), 1
	if isLong {
		worlds, rounds, least = 2, 5*len(faultKinds), 5
	}
	var group sync.WaitGroup
	for i := range worlds {
		group.Go(func() {
			t.Run(fmt.Sprintf("world-%d", i), func(t *testing.T) {
				cp := bed.NewControlPlane(t)
				cp.InstallController(t)
				cp.InstallHyperNodes(t, false)
				s := &schedule{world: onReal(t, cp, rand.New(rand.NewPCG(base, uint64(i)))), way: bed.NewProxy(t, cp), tally: counts,
					streams: i%2 == 1}
				s.way.Page(5)
				s.way.Streams(s.streams)
				s.control = s.way.StartController(t, cp, faultConfig, faultArgs...)
				s.beat(t)
				s.run(t, i*rounds, rounds)
			})
		})
	}
	group.Wait()
	counts.check(t, least)
}
