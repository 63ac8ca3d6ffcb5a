// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weft.dev/weft/tests/cluster/bed"
)

// One HyperNode that the server would not write, as a webhook may say, holds up nothing but itself: all
// others are written and their Nodes labelled, it is tried again, and when the server takes it the
// rest follows.
func TestControllerOneObjectRefused(t *testing.T) {
	t.Parallel()
	s := newSmall(t, 16)
	var allow atomic.Bool
	const leaf = "leaf0003" // of Nodes gpu-006 and gpu-007
	s.way.Judge(func(r *http.Request) bed.Fault {
		if !bed.IsWrite(r) || !strings.Contains(r.URL.Path, "hypernodes") || allow.Load() {
			return bed.Fault{}
		}
		body, err := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if err == nil && strings.Contains(string(body), `"name":"weft-leaf-nn-`+leaf) && strings.Contains(string(body), `"tier":1`) {
			return bed.Fault{Status: http.StatusUnprocessableEntity, Reason: "Invalid"}
		}
		return bed.Fault{}
	})
	c := s.StartController(t, s.way, slowConfig)
	stuck := map[string]bool{"gpu-006": true, "gpu-007": true}
	bed.Poll(t, 15*time.Second, "all that does not depend on the refused one", func() error {
		if n := len(s.hyperNodes(t)); n != 13 {
			return fmt.Errorf("%d HyperNodes\n%s", n, c.Tail(4))
		}
		for name := range s.fleet.nodes {
			if got := s.tierLabels(name); (len(got) == 3) == stuck[name] {
				return fmt.Errorf("%s is labelled %q", name, got)
			}
		}
		return nil
	})
	s.sound(t, 0)
	if n := strings.Count(c.Output(), "event=WriteRefused"); n != 1 {
		t.Errorf("said %d times", n)
	}
	// a move elsewhere goes on meanwhile
	s.move(t, "gpu-000", 7)
	bed.Poll(t, 30*time.Second, "the move of another Node", func() error {
		if got := s.tierLabels("gpu-000"); len(got) != 3 || !strings.Contains(got[0], "leaf0007") {
			return fmt.Errorf("%q", got)
		}
		return nil
	})
	allow.Store(true)
	s.wait(t, 70*time.Second)
	s.sound(t, 0)
	c.Stop(t)
}

// A server that answers every change of a HyperNode with a conflict is not asked ever faster: a few
// tries at once, as somebody else's write may be in the way, then fewer and fewer.
func TestControllerConflictsForEver(t *testing.T) {
	t.Parallel()
	s := newSmall(t, 16)
	c := s.StartController(t, s.way, slowConfig)
	s.wait(t, 15*time.Second)
	var requests, conflicts atomic.Int64
	s.way.Judge(func(r *http.Request) bed.Fault {
		if !strings.Contains(r.URL.Path, "/hypernodes/") {
			return bed.Fault{}
		}
		requests.Add(1)
		if r.Method != http.MethodPut && r.Method != http.MethodDelete {
			return bed.Fault{}
		}
		conflicts.Add(1)
		return bed.Fault{Status: http.StatusConflict, Reason: "Conflict"}
	})
	s.move(t, "gpu-000", 7)
	bed.Poll(t, 15*time.Second, "a conflict", func() error {
		if conflicts.Load() == 0 {
			return fmt.Errorf("none yet")
		}
		return nil
	})
	time.Sleep(6 * time.Second)
	// plans: four at once, then after 1 and 2 s; in each the change is tried four times and read back
	if n := requests.Load(); n > 6*4*2+8 {
		t.Errorf("%d requests in 6 s, %d of them changes", n, conflicts.Load())
	}
	s.way.Judge(nil)
	s.wait(t, 30*time.Second)
	c.Stop(t)
}
