// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weft.dev/weft/tests/cluster/bed"
)

const hyperNodePath = "/apis/topology.volcano.sh/v1alpha1/hypernodes"

// Another owner claims a child of ours and lets go of it before we have answered. Volcano's cache may
// hide the child from our object until that one's members are written anew: one write each time, with
// the same members in another order, also where there is one member only.
func TestControllerTorn(t *testing.T) {
	t.Parallel()
	s := newSmall(t, 16)
	c := s.StartController(t, s.way, slowConfig)
	s.wait(t, 15*time.Second)
	before := s.hyperNodes(t)
	spine := s.tierLabels("gpu-000")[1] // has two leaves
	mark := s.mark()
	for round := range 4 {
		began := s.mark()
		child := spineChild(before, spine, round%2)
		s.makeHyperNode(t, "theirs", 7, map[string]any{}, bed.Member{Type: "HyperNode", Name: child})
		time.Sleep(300 * time.Millisecond) // the controller's debounce is a second
		s.Do(t, http.MethodDelete, hyperNodePath+"/theirs", nil)
		bed.Poll(t, 10*time.Second, "the parent to be written", func() error {
			if got := s.writes(began, "hypernodes"); !slices.Equal(got, []string{"update " + spine}) {
				return fmt.Errorf("%q", got)
			}
			return nil
		})
		s.still(t, 2*time.Second)
		now := s.hyperNodes(t)[spine].Members
		if was := before[spine].Members; (round%2 == 0) == slices.Equal(now, was) {
			t.Errorf("round %d: members %v, first %v", round, now, was)
		}
	}
	if got := s.writes(mark, "hypernodes"); len(got) != 4 {
		t.Errorf("%q, want one write for each claim that vanished", got)
	}
	if err := s.right(t); err != nil {
		t.Error(err)
	}
	c.Stop(t)
}

func spineChild(all map[string]bed.HyperNode, spine string, i int) string {
	return all[spine].Members[i].Name
}

// A HyperNode that is deleted under its parent comes back at once also while a source that the
// configuration names now has not answered: nobody knows what is wanted, but what was is known.
func TestControllerDeletedWhileSourceWaits(t *testing.T) {
	t.Parallel()
	s := newSmall(t, 16)
	c := s.StartController(t, s.way, slowConfig)
	s.wait(t, 15*time.Second)
	before := s.hyperNodes(t)
	hangs := filepath.Join(bed.Dir(t), "hangs")
	if err := os.WriteFile(hangs, []byte("#!/bin/sh\nexec sleep 600\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	bed.Write(t, c.Config, slowConfig+fmt.Sprintf("- infiniband: {commands: [[%q]], timeout: 500s}\n", hangs))
	bed.Poll(t, 10*time.Second, "the new configuration", func() error {
		if !strings.Contains(c.Output(), "configuration-read") {
			return fmt.Errorf("%s", c.Tail(3))
		}
		return nil
	})
	mark := s.mark()
	for _, name := range []string{s.tierLabels("gpu-000")[0], s.tierLabels("gpu-004")[1]} {
		began := time.Now()
		s.Do(t, http.MethodDelete, hyperNodePath+"/"+name, nil)
		bed.Poll(t, 5*time.Second, name+" to come back", func() error {
			if _, exists := s.hyperNodes(t)[name]; !exists {
				return fmt.Errorf("it is gone\n%s", c.Tail(3))
			}
			return nil
		})
		t.Logf("back after %v", time.Since(began))
	}
	s.still(t, 2*time.Second)
	if got := s.writes(mark, "hypernodes"); len(got) != 2 {
		t.Errorf("%q, want two creates", got)
	}
	for name, hn := range s.hyperNodes(t) {
		if was := before[name]; !slices.Equal(was.Members, hn.Members) || was.Annotations["weft.dev/identity"] != hn.Annotations["weft.dev/identity"] {
			t.Errorf("%s came back as %v, was %v", name, hn, was)
		}
	}
	c.Stop(t)
}
