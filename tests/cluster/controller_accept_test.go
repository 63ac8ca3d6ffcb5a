// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"weft.dev/weft/tests/cluster/bed"
	"weft.dev/weft/tests/cluster/bed/fakeapi"
)

// A debounce long enough to see a change of many Nodes at once on a busy machine.
const slowConfig = `apiVersion: weft.dev/v1alpha1
kind: ControllerConfig
tiers: [leaf, spine, core]
debounce: {quiet: 1s, max: 20s}
sources:
- labels: {preset: aws}
`

// A held change goes through when it is accepted, by the controller that refused it, and by one
// that starts later; another change is not freed by it, and the word is taken out when it was used.
func TestControllerAccept(t *testing.T) {
	t.Parallel()
	s := newSmall(t, 32)
	c := s.StartController(t, s.way, slowConfig)
	s.wait(t, 15*time.Second)
	mark := s.mark()
	for i := range 16 { // leaves 0 to 3 to leaf 7: half of the Nodes
		s.move(t, fmt.Sprintf("gpu-%03d", i), 7)
	}
	first := refused(t, c)
	s.still(t, 3*time.Second)
	s.accepts(t, first)
	s.wait(t, 15*time.Second)
	s.sound(t, mark)
	bed.Poll(t, 5*time.Second, "the used word to be gone", func() error {
		if data, _ := s.accepted(t)["data"].(map[string]any); len(data) > 0 {
			return fmt.Errorf("%v", data)
		}
		return nil
	})

	// The way back is another change. It is accepted while no controller runs.
	for i := range 16 {
		s.move(t, fmt.Sprintf("gpu-%03d", i), i/4)
	}
	c.Stop(t)
	c.Restart(t)
	second := refused(t, c, first) // never called as the first, though half of it is the same
	c.Stop(t)
	s.accepts(t, second)
	s.accepts(t, first) // says nothing about this change
	c.Restart(t)
	s.wait(t, 15*time.Second)
	s.sound(t, mark)
	c.Stop(t)
}

func (s *small) accepted(t *testing.T) fakeapi.Object {
	t.Helper()
	return s.Do(t, http.MethodGet, "/api/v1/namespaces/"+bed.Namespace+"/configmaps/weft-accepted", nil)
}

// Killed after each write of an accepted change: the next start carries it out to its end, with no
// further word, since where it leads is part of the word.
func TestControllerAcceptKilled(t *testing.T) {
	t.Parallel()
	s := newSmall(t, 32)
	c := s.StartController(t, s.way, slowConfig)
	s.wait(t, 15*time.Second)
	for i := range 16 {
		s.move(t, fmt.Sprintf("gpu-%03d", i), 7)
	}
	hash := refused(t, c)
	bed.Poll(t, 15*time.Second, "the refused change in the list of what waits", func() error {
		if out, code := s.Ctl(t, s.way, "accept"); code != 1 || !strings.Contains(out, hash+"  brake") {
			return fmt.Errorf("%d, %s", code, out)
		}
		return nil
	})
	c.Stop(t)
	mark := s.mark()
	s.accepts(t, hash)
	writes := 0
	for round := 0; ; round++ {
		if round > 40 {
			t.Fatal("it does not come to an end")
		}
		before := s.mark()
		s.way.Judge(func(r *http.Request) bed.Fault { // one HyperNode write, and no more
			if bed.IsWrite(r) && strings.Contains(r.URL.Path, "hypernodes") && len(s.writes(before, "hypernodes")) > 0 {
				return bed.Fault{Status: http.StatusInternalServerError}
			}
			return bed.Fault{}
		})
		c.Restart(t)
		bed.Poll(t, 15*time.Second, "one write, or the end", func() error {
			if len(s.writes(before, "hypernodes")) == 0 && s.right(t) != nil {
				return fmt.Errorf("neither: %w\n%s", s.right(t), c.Tail(3))
			}
			return nil
		})
		c.Crash(t)
		writes += len(s.writes(before, "hypernodes"))
		if len(s.writes(before, "hypernodes")) == 0 {
			break
		}
	}
	s.way.Judge(nil)
	s.sound(t, mark)
	// leaf 7 takes 16 in; spine 0, 1 and core 0 go with leaves 0 to 3: core 0, two spines, four
	// leaves deleted from the top, one claim
	if writes != 8 {
		t.Errorf("%d writes, want 8: %q", writes, s.writes(mark, "hypernodes"))
	}
}

// Tiers that would change their meaning are refused, however few Nodes there are.
func TestControllerTiersRefused(t *testing.T) {
	t.Parallel()
	s := newSmall(t, 4)
	c := s.StartController(t, s.way, slowConfig)
	s.wait(t, 15*time.Second)
	before := s.hyperNodes(t)
	bed.Write(t, c.Config, strings.NewReplacer("tiers: [leaf, spine, core]", "tiers: [rack, row, hall]",
		"labels: {preset: aws}", "labels: {keys: ["+keysAs("rack", "row", "hall")+"]}").Replace(slowConfig))
	hash := refused(t, c)
	s.still(t, 3*time.Second)
	if len(s.hyperNodes(t)) != len(before) {
		t.Fatal("HyperNodes came or went")
	}
	mark := s.mark()
	s.accepts(t, hash)
	bed.Poll(t, 15*time.Second, "the new tiers", func() error {
		for name, hn := range s.hyperNodes(t) {
			if !slices.Contains([]string{"rack", "row", "hall"}, hn.TierName) {
				return fmt.Errorf("%s is of tier %s", name, hn.TierName)
			}
		}
		return s.right(t)
	})
	s.sound(t, mark)
	c.Stop(t)
}

// keysAs names AWS's levels, closest first.
func keysAs(names ...string) string {
	var all []string
	for i, name := range names {
		all = append(all, fmt.Sprintf("{key: %s, tierName: %s}", awsKeys[i], name))
	}
	return strings.Join(all, ", ")
}
