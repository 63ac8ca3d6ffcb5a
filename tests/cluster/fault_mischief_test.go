// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"maps"
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

// tally counts how often each kind of fault has happened.
type tally struct {
	mu   sync.Mutex
	hits map[string]int
}

func (c *tally) add(kind string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hits[kind]++
}

// check fails if a kind happened fewer than least times.
func (c *tally) check(t *testing.T, least int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, kind := range faultKinds {
		if only := os.Getenv("WEFT_FAULT"); only != "" && only != kind.name {
			continue
		}
		if c.hits[kind.name] < least {
			t.Errorf("fault %q happened %d times, want %d: the test proves too little", kind.name, c.hits[kind.name], least)
		}
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(c.hits)) {
		all = append(all, fmt.Sprintf("%s %d", name, c.hits[name]))
	}
	t.Logf("faults: %s", strings.Join(all, ", "))
}

// More failures of lists and watches in a round than this only make the waits between tries long.
const readFaultsMax = 4

// mischief is the faults of one round.
type mischief struct {
	mu      sync.Mutex
	random  *rand.Rand
	active  []*activeKind
	relists int             // watches that are still to be told that their version is gone
	read    int             // faults of lists and watches so far
	gone    map[string]bool // versions and pages that were said to be forgotten: they stay so
	waits   map[string]wait // what may not be asked before
	unread  string          // a write of a HyperNode whose answer was lost
	hung    time.Time       // when connections were last ended
	lost    time.Time       // when that was
	broken  []string        // requests that should not have come
	tally   *tally
	say     func(string)
}

// wait is what a 429 with Retry-After asks for.
type wait struct{ told, until time.Time }

// onTheWay is how long a request may have been under way when another one was answered: creates of a
// tier are sent together.
const onTheWay = 100 * time.Millisecond

type activeKind struct {
	*faultKind
	left   int
	hits   int
	chance float64
}

// versionOf is what a list or watch goes on from.
func versionOf(r *http.Request) string {
	query := r.URL.Query()
	if query.Get("sendInitialEvents") == "true" {
		return ""
	}
	return r.URL.Path + " " + query.Get("resourceVersion") + query.Get("continue")
}

// waitKey is what a Retry-After is about: no HyperNode is written before its time.
func waitKey(r *http.Request, what class) string {
	if what == aHyper {
		return string(aHyper)
	}
	return r.Method + r.URL.Path
}

// again is what becomes of a request that a fault of before has settled: a version that is gone
// stays gone, who was told to wait must wait, and what was lost must be looked for.
func (m *mischief) again(r *http.Request, what class) (bed.Fault, bool) {
	if what == aHyper || what == aNode {
		w, told := m.waits[waitKey(r, what)]
		together := r.Method == http.MethodPost && time.Since(w.told) < onTheWay
		if told && !together && time.Until(w.until) > 50*time.Millisecond {
			m.broken = append(m.broken, fmt.Sprintf("a 429 came with Retry-After, and %s %s came %v before its time", r.Method, r.URL.Path, time.Until(w.until)))
		}
	}
	together := r.Method == http.MethodPost && strings.HasPrefix(m.unread, http.MethodPost) && time.Since(m.lost) < onTheWay
	switch {
	case what == aHyper && together:
	case what == aHyper && m.unread != "":
		m.broken = append(m.broken, fmt.Sprintf("the answer to %s was lost, and %s %s came before it was read back", m.unread, r.Method, r.URL.Path))
		m.unread = ""
	case what != aNode && what != aWatch && strings.Contains(r.URL.Path, "/hypernodes"):
		m.unread = ""
	}
	if version := versionOf(r); (what == aWatch || what == aPage) && m.gone[version] {
		return bed.Fault{Status: http.StatusGone, Reason: "Expired", Message: "it is still too old"}, true
	}
	return bed.Fault{}, false
}

// forgetLast: with a connection goes an answer that has hardly begun, or that is just about to, and
// then nobody was told.
func (m *mischief) forgetLast() {
	m.hung = time.Now()
	maps.DeleteFunc(m.waits, func(_ string, w wait) bool { return time.Since(w.told) < onTheWay })
}

// hungUp says that all connections were ended.
func (m *mischief) hungUp() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forgetLast()
}

func (m *mischief) hit(k *activeKind, r *http.Request) {
	k.hits++
	m.tally.add(k.name)
	m.say(fmt.Sprintf("fault: %s: %s %s", k.name, r.Method, r.URL.Path))
}

// happened is nil once the round's own fault has happened.
func (m *mischief) happened() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.active[0]; k.hits == 0 && k.make != nil {
		return fmt.Errorf("%s has not happened", k.name)
	}
	return nil
}

func newActive(random *rand.Rand, kind int, chance float64) *activeKind {
	k := &activeKind{faultKind: &faultKinds[kind], left: 1, chance: chance}
	if !k.once {
		k.left += random.IntN(3)
	}
	return k
}

// judge decides about one request.
func (m *mischief) judge(r *http.Request) bed.Fault {
	m.mu.Lock()
	defer m.mu.Unlock()
	what := classOf(r)
	reads := slices.Contains(lists, what) || what == aWatch
	if fault, again := m.again(r, what); again {
		return fault
	}
	if what == aWatch && m.relists > 0 {
		m.relists--
		m.read++
		m.gone[versionOf(r)] = true
		m.tally.add("410 in a watch")
		return bed.Fault{Gone: true}
	}
	for i, k := range m.active {
		if reads && m.read >= readFaultsMax && (i > 0 || k.hits > 0) {
			continue
		}
		if k.left == 0 || !slices.Contains(k.on, what) || m.random.Float64() >= k.chance {
			continue
		}
		k.left--
		if reads {
			m.read++
		}
		fault := k.make(m.random)
		if fault.Gone || fault.Status == http.StatusGone {
			m.gone[versionOf(r)] = true
		}
		if what == aHyper && (fault.Lose || fault.Half) {
			m.unread, m.lost = r.Method+" "+r.URL.Path, time.Now()
		}
		if fault.RetryAfter > 0 && time.Since(m.hung) > onTheWay {
			m.waits[waitKey(r, what)] = wait{time.Now(), time.Now().Add(time.Duration(fault.RetryAfter) * time.Second)}
		}
		if fault.Hangup {
			m.forgetLast()
		}
		if fault.Gone || fault.Silent || fault.Rewind || fault.Half { // it happens later, or not at all
			fault.Hit = func() {
				m.mu.Lock()
				defer m.mu.Unlock()
				m.hit(k, r)
			}
		} else {
			m.hit(k, r)
		}
		return fault
	}
	return bed.Fault{}
}
