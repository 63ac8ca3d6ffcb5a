// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"weft.dev/weft/tests/cluster/bed"
	"weft.dev/weft/tests/cluster/bed/fakeapi"
)

// uninstall runs --uninstall to its end and returns its exit status.
func (s *small) uninstall(t *testing.T, args ...string) (*bed.Controller, int) {
	t.Helper()
	c := s.StartController(t, s.way, "", append([]string{"--uninstall"}, args...)...)
	code, err := c.Wait(60 * time.Second)
	if err != nil {
		t.Fatalf("%v\n%s", err, c.Tail(20))
	}
	return c, code
}

// clean is nil if nothing of instance weft is left.
func (s *small) clean(t *testing.T) error {
	t.Helper()
	for name, hn := range s.hyperNodes(t) {
		if ours(hn) && hn.Labels["app.kubernetes.io/instance"] == "weft" {
			return fmt.Errorf("HyperNode %s is left", name)
		}
	}
	for name := range s.fleet.nodes {
		if labels := s.tierLabels(name); len(labels) > 0 {
			return fmt.Errorf("node %s has labels %q", name, labels)
		}
	}
	return nil
}

// makeHyperNode makes one of somebody else, with labels as given.
func (s *small) makeHyperNode(t *testing.T, name string, tier int64, labels map[string]any, members ...bed.Member) {
	t.Helper()
	var list []any
	for _, m := range members {
		list = append(list, map[string]any{"type": m.Type, "selector": map[string]any{"exactMatch": map[string]any{"name": m.Name}}})
	}
	s.Do(t, http.MethodPost, "/apis/topology.volcano.sh/v1alpha1/hypernodes", fakeapi.Object{
		"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode",
		"metadata": fakeapi.Object{"name": name, "labels": labels},
		"spec":     fakeapi.Object{"tier": tier, "members": list}})
}

// All of ours goes, from the top, and nothing of others; a running controller is waited for.
func TestControllerUninstall(t *testing.T) {
	t.Parallel()
	s := newSmall(t, 16)
	s.makeHyperNode(t, "theirs", 1, map[string]any{"volcano.sh/network-topology-source": "label"}, bed.Member{Type: "Node", Name: "cpu-9"})
	c := s.StartController(t, s.way, slowConfig)
	s.wait(t, 15*time.Second)
	mark := s.mark()
	late, code := s.uninstall(t)
	if code != 1 || !strings.Contains(late.Output(), "stop the running controller first") {
		t.Errorf("beside a running controller: exit status %d\n%s", code, late.Tail(3))
	}
	if all := s.writes(mark, "hypernodes"); len(all) > 0 {
		t.Fatalf("it wrote without the Lease: %q", all)
	}
	c.Stop(t)
	dry, code := s.uninstall(t, "--dry-run")
	if code != 0 || !strings.Contains(dry.Output(), "14 HyperNode writes, 16 Nodes to label, 0 HyperNodes in all") {
		t.Errorf("--dry-run: exit status %d\n%s", code, dry.Tail(3))
	}
	if all := s.writes(mark, "hypernodes"); len(all) > 0 {
		t.Fatalf("--dry-run wrote %q", all)
	}
	if _, code := s.uninstall(t); code != 0 {
		t.Errorf("exit status %d", code)
	}
	if err := s.clean(t); err != nil {
		t.Error(err)
	}
	s.sound(t, mark)
	if _, exists := s.hyperNodes(t)["theirs"]; !exists {
		t.Error("another's HyperNode is gone")
	}
	mark = s.mark()
	if _, code := s.uninstall(t); code != 0 { // there is nothing to do
		t.Errorf("once more: exit status %d", code)
	}
	if all := append(s.writes(mark, "hypernodes"), s.writes(mark, "nodes")...); len(all) > 0 {
		t.Errorf("with nothing left it wrote %q", all)
	}
}

// Killed after each single write, and begun again: always sound, and one write less each time.
func TestControllerUninstallKilled(t *testing.T) {
	t.Parallel()
	s := newSmall(t, 8)
	c := s.StartController(t, s.way, slowConfig)
	s.wait(t, 15*time.Second)
	c.Stop(t)
	mark := s.mark()
	for round := 0; s.clean(t) != nil; round++ {
		if round > 60 {
			t.Fatal("it does not come to an end")
		}
		before := s.mark()
		done := func() int { return len(s.writes(before, "hypernodes")) + len(s.writes(before, "nodes")) }
		s.way.Judge(func(r *http.Request) bed.Fault {
			objects := strings.Contains(r.URL.Path, "/hypernodes/") || strings.Contains(r.URL.Path, "/nodes/")
			if bed.IsWrite(r) && objects && done() > 0 {
				return bed.Fault{Delay: time.Minute}
			}
			return bed.Fault{}
		})
		u := s.StartController(t, s.way, "", "--uninstall")
		bed.Poll(t, 15*time.Second, "one write", func() error {
			if done() == 0 {
				return fmt.Errorf("none\n%s", u.Tail(5))
			}
			return nil
		})
		u.Crash(t)
	}
	s.way.Judge(nil)
	s.sound(t, mark)
	// 8 leaves, 4 spines, 2 cores, and 8 Nodes: none twice
	if n := len(s.writes(mark, "hypernodes")); n != 14 {
		t.Errorf("%d HyperNode writes, want 14: %q", n, s.writes(mark, "hypernodes"))
	}
	if n := len(s.writes(mark, "nodes")); n != 8 {
		t.Errorf("%d Node writes, want 8", n)
	}
}

// What another's HyperNode lists stays, and is named.
func TestControllerUninstallForeignParent(t *testing.T) {
	t.Parallel()
	s := newSmall(t, 8)
	c := s.StartController(t, s.way, slowConfig)
	s.wait(t, 15*time.Second)
	c.Stop(t)
	core := s.tierLabels("gpu-000")[2]
	s.makeHyperNode(t, "theirs", 9, map[string]any{}, bed.Member{Type: "HyperNode", Name: core})
	mark := s.mark()
	u, code := s.uninstall(t)
	if code != 1 || !strings.Contains(u.Output(), core) {
		t.Errorf("exit status %d, and nothing about %s\n%s", code, core, u.Tail(5))
	}
	s.sound(t, mark)
	if _, exists := s.hyperNodes(t)[core]; !exists {
		t.Error("what another's HyperNode lists is gone")
	}
}

// Two releases in two namespaces, for the same Nodes and the same labels: the second stands back
// from what the first has, and neither undoes what the other wrote.
func TestControllerTwoReleases(t *testing.T) {
	t.Parallel()
	s := newSmall(t, 16)
	s.Do(t, http.MethodPost, "/api/v1/namespaces", fakeapi.Object{"apiVersion": "v1", "kind": "Namespace",
		"metadata": fakeapi.Object{"name": "other"}})
	s.StartController(t, s.way, slowConfig)
	s.wait(t, 15*time.Second)
	mark := s.mark()
	other := s.StartController(t, s.NewWay(t), slowConfig, "--namespace", "other", "--instance", "other")
	bed.Poll(t, 15*time.Second, "the other release to lead and to see the first one's", func() error {
		if !strings.Contains(other.Output(), "event=NameTaken") { // the same groups: the same names
			return fmt.Errorf("%s", other.Tail(5))
		}
		return nil
	})
	s.still(t, 5*time.Second)
	if all := append(s.writes(mark, "hypernodes"), s.writes(mark, "nodes")...); len(all) > 0 {
		t.Errorf("the second release wrote %q", all)
	}
	if err := s.right(t); err != nil {
		t.Error(err)
	}
	// the first goes on as if it were alone
	s.move(t, "gpu-000", 7)
	s.wait(t, 15*time.Second)
	s.still(t, 3*time.Second)
	// and uninstalling the second takes nothing from it
	other.Stop(t)
	mark = s.mark()
	if _, code := s.uninstall(t, "--namespace", "other", "--instance", "other"); code != 0 {
		t.Errorf("exit status %d", code)
	}
	if all := append(s.writes(mark, "hypernodes"), s.writes(mark, "nodes")...); len(all) > 0 {
		t.Errorf("uninstalling the second release wrote %q", all)
	}
}
