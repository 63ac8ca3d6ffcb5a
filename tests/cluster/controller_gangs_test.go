// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"weft.dev/weft/tests/cluster/bed"
	"weft.dev/weft/tests/cluster/bed/fakeapi"
)

// makePod makes a running pod on a Node, of a gang or of none.
func (s *small) makePod(t *testing.T, name, node, gang string) {
	t.Helper()
	annotations := map[string]any{}
	if gang != "" {
		annotations["scheduling.k8s.io/group-name"] = gang
	}
	s.Do(t, http.MethodPost, "/api/v1/namespaces/"+bed.Namespace+"/pods", fakeapi.Object{"apiVersion": "v1", "kind": "Pod",
		"metadata": fakeapi.Object{"name": name, "annotations": annotations},
		"spec":     fakeapi.Object{"nodeName": node, "containers": []any{map[string]any{"name": "c", "image": "i"}}},
		"status":   fakeapi.Object{"phase": "Running"}})
}

// podLists counts the requests for pods, by Node, that come by the way.
func (s *small) podLists(deny bool) func() []string {
	var mu sync.Mutex
	var asked []string
	s.way.Judge(func(r *http.Request) bed.Fault {
		if r.URL.Path != "/api/v1/pods" {
			return bed.Fault{}
		}
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, r.URL.Query().Get("fieldSelector"))
		if deny {
			return bed.Fault{Status: http.StatusForbidden, Reason: "Forbidden"}
		}
		return bed.Fault{}
	})
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(asked)
	}
}

// A Node with a running gang waits, others do not; it goes when the word is given.
func TestControllerGangHoldsMove(t *testing.T) {
	t.Parallel()
	s := newSmall(t, 16)
	asked := s.podLists(false)
	s.makePod(t, "p0", "gpu-000", "train")
	s.makePod(t, "p1", "gpu-001", "")
	s.makePod(t, "p9", "gpu-009", "train")
	c := s.StartController(t, s.way, slowConfig)
	s.wait(t, 15*time.Second)
	if len(asked()) > 0 {
		t.Fatalf("pods are listed although nobody moves: %q", asked())
	}
	leaf := s.tierLabels("gpu-000")[0]
	for _, name := range []string{"gpu-000", "gpu-001"} {
		s.move(t, name, 7)
	}
	bed.Poll(t, 10*time.Second, "the Node without a gang to move", func() error {
		if got := s.tierLabels("gpu-001"); len(got) != 3 || !strings.Contains(got[0], "leaf0007") {
			return fmt.Errorf("%q", got)
		}
		return nil
	})
	hash := refused(t, c)
	s.still(t, 2*time.Second)
	if got := s.tierLabels("gpu-000"); len(got) != 3 || got[0] != leaf {
		t.Errorf("gpu-000 is labelled %q, its gang runs on %s", got, leaf)
	}
	got := asked()
	slices.Sort(got)
	if !slices.Equal(got, []string{"spec.nodeName=gpu-000", "spec.nodeName=gpu-001"}) {
		t.Errorf("asked for the pods of %q", got)
	}
	s.accepts(t, hash)
	s.wait(t, 15*time.Second)
	s.sound(t, 0)
	c.Stop(t)
}

// What is known of gangs when the debounce ends spares a pass that would only ask.
func TestControllerGangAskedAhead(t *testing.T) {
	t.Parallel()
	s := newSmall(t, 16)
	asked := s.podLists(false)
	c := s.StartController(t, s.way, slowConfig, "--listen", "127.0.0.1:0")
	s.wait(t, 15*time.Second)
	s.still(t, 2*time.Second)
	before := passes(t, c)
	s.move(t, "gpu-001", 7)
	s.wait(t, 15*time.Second)
	s.still(t, 2*time.Second)
	if n := passes(t, c) - before; n != 1 {
		t.Errorf("%d passes for one move", n)
	}
	if got := asked(); !slices.Equal(got, []string{"spec.nodeName=gpu-001"}) {
		t.Errorf("asked for the pods of %q", got)
	}
	s.add(t, "gpu-new", awsPlace(1)) // no place yet, so nothing that could move
	s.wait(t, 15*time.Second)
	if n := len(asked()); n != 1 {
		t.Errorf("asked for the pods of %q", asked()[1:])
	}
	c.Stop(t)
}

var passesLine = regexp.MustCompile(`(?m)^weft_passes_total (\d+)$`)

func passes(t *testing.T, c *bed.Controller) int {
	t.Helper()
	_, metrics := page(t, c, "/metrics")
	found := passesLine.FindStringSubmatch(metrics)
	if found == nil {
		t.Fatalf("no weft_passes_total in\n%s", metrics)
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// That a Node had no gang says nothing about later, also while another Node's gang is waited for.
func TestControllerGangComesLater(t *testing.T) {
	t.Parallel()
	s := newSmall(t, 16)
	s.makePod(t, "p0", "gpu-000", "train")
	c := s.StartController(t, s.way, slowConfig)
	s.wait(t, 15*time.Second)
	for _, name := range []string{"gpu-000", "gpu-001"} {
		s.move(t, name, 7)
	}
	moved := func(leaf string) {
		t.Helper()
		bed.Poll(t, 10*time.Second, "the Node without a gang to move", func() error {
			if got := s.tierLabels("gpu-001"); len(got) != 3 || !strings.Contains(got[0], leaf) {
				return fmt.Errorf("%q", got)
			}
			return nil
		})
	}
	moved("leaf0007")
	s.makePod(t, "p1", "gpu-001", "train")
	s.move(t, "gpu-001", 6)
	s.still(t, 3*time.Second) // the debounce is 1 s
	moved("leaf0007")
	c.Stop(t)
}

// With --once too the answers are waited for; the Node that waits is no failure of the run.
func TestControllerGangOnce(t *testing.T) {
	t.Parallel()
	s := newSmall(t, 16)
	c := s.StartController(t, s.way, slowConfig, "--once")
	if code, err := c.Wait(30 * time.Second); code != 0 || err != nil {
		t.Fatal(code, err, c.Tail(10))
	}
	s.makePod(t, "p0", "gpu-000", "train")
	s.move(t, "gpu-000", 7)
	s.move(t, "gpu-002", 7)
	mark := s.mark()
	c = s.StartController(t, s.way, slowConfig, "--once")
	if code, err := c.Wait(30 * time.Second); code != 0 || err != nil {
		t.Fatal(code, err, c.Tail(10))
	}
	if n := len(s.writes(mark, "hypernodes")); n != 2 { // gpu-002: release, claim
		t.Errorf("%q", s.writes(mark, "hypernodes"))
	}
	if got := s.tierLabels("gpu-000"); strings.Contains(got[0], "leaf0007") {
		t.Errorf("gpu-000 moved to %q under its gang", got)
	}
}

// Without the right to list pods nobody waits, and that is said once.
func TestControllerGangForbidden(t *testing.T) {
	t.Parallel()
	s := newSmall(t, 16)
	asked := s.podLists(true)
	s.makePod(t, "p0", "gpu-000", "train")
	c := s.StartController(t, s.way, slowConfig)
	s.wait(t, 15*time.Second)
	for i := range 3 {
		s.move(t, fmt.Sprintf("gpu-%03d", i), 7)
		s.wait(t, 15*time.Second)
	}
	if n := strings.Count(c.Output(), "event=GangsNotKnown"); n != 1 {
		t.Errorf("said %d times", n)
	}
	if len(asked()) != 1 {
		t.Errorf("asked %q after it was denied", asked())
	}
	c.Stop(t)
}
