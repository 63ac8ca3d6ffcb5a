// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weft.dev/weft/tests/cluster/bed"
)

func mapKeys[V any](m map[string]V) iter.Seq[string] { return maps.Keys(m) }

// adopted checks that a controller started after mark leads and finds nothing to write.
func (f *fleet) adopted(t *testing.T, c *bed.Controller, mark bed.Mark) {
	t.Helper()
	bed.Poll(t, 20*time.Second, "the new controller leads", func() error {
		if err := c.Check(); err != nil {
			return err
		}
		if f.leaseHolder(t) == "" {
			return fmt.Errorf("nobody holds the Lease")
		}
		return nil
	})
	f.still(t, 2*time.Second, bed.ControllerUser)
	if events := f.cp.Audit.Since(t, mark, bed.HyperNodeWrites(bed.ControllerUser)); len(events) > 0 {
		t.Errorf("HyperNode writes where nothing was to do: %v", events)
	}
}

// HyperNodes of others, one of them with our source label and another instance: read, never written.
func TestControllerForeign(t *testing.T) {
	t.Parallel()
	f := newCluster(t, 16)
	createNode(t, f.cp, "other-node", nil)
	foreign := []bed.HyperNode{
		{Name: "rack-of-another", Tier: 1, Members: []bed.Member{{Type: "Node", Name: "other-node"}},
			Labels: map[string]string{"volcano.sh/network-topology-source": "label"}},
		{Name: "weft-of-another-release", Tier: 2, TierName: "spine", Members: []bed.Member{{Type: "HyperNode", Name: "rack-of-another"}},
			Labels: map[string]string{"volcano.sh/network-topology-source": "weft",
				"app.kubernetes.io/managed-by": "weft-controller", "app.kubernetes.io/instance": "another-release"}},
		{Name: "by-hand", Tier: 1, Members: []bed.Member{{Type: "Node", Name: "gone-node"}}},
	}
	for i, hn := range foreign {
		foreign[i] = f.cp.CreateHyperNode(t, hn)
	}
	mine := func() {
		t.Helper()
		all := f.cp.HyperNodes(t)
		for _, want := range foreign {
			if got := all[want.Name]; got.UID != want.UID || got.ResourceVersion != want.ResourceVersion {
				t.Errorf("HyperNode %s was touched: %+v, was %+v", want.Name, got, want)
			}
		}
	}
	bed.StartController(t, f.cp, quickConfig)
	bed.Poll(t, 15*time.Second, "weft's HyperNodes beside the others'", func() error {
		return f.rightBeside(t, foreign)
	})
	mine()
	f.still(t, 2*time.Second, bed.ControllerUser)

	f.relabel(t, "gpu-000", awsPlace(7))
	f.remove(t, "gpu-002")
	f.remove(t, "gpu-003")
	bed.Poll(t, 15*time.Second, "weft's HyperNodes after a change", func() error { return f.rightBeside(t, foreign) })
	mine()
	for _, e := range f.cp.Audit.Since(t, 0, bed.HyperNodeWrites(bed.ControllerUser)) {
		for _, hn := range foreign {
			if e.Name() == hn.Name {
				t.Errorf("the controller tried to write %s: %v", hn.Name, e)
			}
		}
	}
}

// rightBeside is right where the HyperNodes of others are left out of the look.
func (f *fleet) rightBeside(t *testing.T, foreign []bed.HyperNode) error {
	t.Helper()
	all := f.cp.HyperNodes(t)
	for _, hn := range foreign {
		delete(all, hn.Name)
	}
	actual, err := forestOf(all, len(f.keys))
	if err != nil {
		return err
	}
	for tier, want := range f.groups() {
		if !maps.Equal(actual.groups[tier], want) {
			return fmt.Errorf("tier %d: %v, want %v", tier+1, actual.groups[tier], want)
		}
	}
	return f.labelsAlone(t)
}

// Without Volcano's CRD the controller labels nodes, says once what is missing, and makes the
// HyperNodes, children first, when the CRD is there.
func TestControllerWithoutCRD(t *testing.T) {
	t.Parallel()
	bed.Program(t, "weft-controller")
	cp := bed.NewControlPlane(t)
	cp.InstallController(t)
	f := newFleet(t, cp, 16)
	c := bed.StartController(t, cp, quickConfig)
	bed.Poll(t, 15*time.Second, "tier labels on the nodes", func() error {
		if err := c.Check(); err != nil {
			return err
		}
		return f.labelsAlone(t)
	})
	said := func() int {
		events := cp.Audit.Since(t, 0, func(e bed.Event) bool {
			return e.User.Username == bed.ControllerUser && e.Object.Resource == "events"
		})
		return len(slices.DeleteFunc(events, func(e bed.Event) bool {
			return !strings.Contains(strings.ToLower(string(e.Body)), "hypernode")
		}))
	}
	bed.Poll(t, 10*time.Second, "an event about the missing CRD", func() error {
		if said() == 0 {
			return fmt.Errorf("no event")
		}
		return nil
	})
	f.still(t, 3*time.Second, bed.ControllerUser)
	if n := said(); n != 1 {
		t.Errorf("%d events about the missing CRD, want one", n)
	}

	mark := cp.Audit.Mark(t)
	cp.InstallHyperNodes(t, false)
	f.wait(t, 70*time.Second)
	writes := cp.Audit.Since(t, mark, bed.HyperNodeWrites(bed.ControllerUser))
	replay(t, map[string]bed.HyperNode{}, writes)
	made := slices.DeleteFunc(writes, func(e bed.Event) bool { return !e.OK() })
	if len(made) != 14 {
		t.Errorf("%d HyperNodes were written, want 14", len(made))
	}
}

// labelsAlone checks that nodes with one path share their labels, and no others do.
func (f *fleet) labelsAlone(t *testing.T) error {
	t.Helper()
	list, err := f.cp.Client.CoreV1().Nodes().List(bed.Context(t), metav1.ListOptions{})
	if err != nil {
		return err
	}
	for tier, want := range f.groups() {
		byLabel := map[string][]string{}
		for _, node := range list.Items {
			if value := node.Labels[fmt.Sprintf("weft.dev/tier-%d", tier+1)]; value != "" {
				byLabel[value] = append(byLabel[value], node.Name)
			}
		}
		got := map[string]bool{}
		for _, names := range byLabel {
			got[setOf(names)] = true
		}
		if !maps.Equal(got, want) {
			return fmt.Errorf("label of tier %d: %v, want %v", tier+1, got, want)
		}
	}
	return nil
}

// paused: true stops the writes, and taking it off lets them go on; the file is read while the
// controller runs.
func TestControllerPaused(t *testing.T) {
	t.Parallel()
	f := newCluster(t, 16)
	c := bed.StartController(t, f.cp, quickConfig+"paused: true\n")
	mark := f.cp.Audit.Mark(t)
	f.relabel(t, "gpu-000", awsPlace(7))
	bed.Hold(t, 4*time.Second, "nothing is written", func() error {
		if events := f.cp.Audit.Since(t, mark, bed.Writes(bed.ControllerUser)); len(events) > 0 {
			return fmt.Errorf("%v", events)
		}
		return c.Check()
	})
	bed.Write(t, c.Config, quickConfig)
	f.settle(t, 20*time.Second, bed.ControllerUser)

	bed.Write(t, c.Config, quickConfig+"paused: true\n")
	bed.Poll(t, 10*time.Second, "the controller says that it is paused", func() error {
		if !strings.Contains(c.Output(), "paused") {
			return fmt.Errorf("it does not")
		}
		return nil
	})
	f.relabel(t, "gpu-001", awsPlace(7))
	f.still(t, 3*time.Second, bed.ControllerUser)

	// A file that an editor has emptied, or that is broken, ends no pause; and it is said once each,
	// although the log stands in the watched folder and is a change there itself.
	for _, text := range []string{"", quickConfig + "paused: no\nfoo: 1\n"} {
		if err := os.WriteFile(c.Config, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		f.still(t, 2*time.Second, bed.ControllerUser)
	}
	if n := strings.Count(c.Output(), "configuration-rejected"); n != 2 {
		t.Errorf("%d lines say that the configuration is rejected, not 2", n)
	}
	if n := len(strings.Split(c.Output(), "\n")); n > 100 {
		t.Errorf("the log has %d lines", n)
	}
	c.Stop(t)
}

// Half of the nodes seem to move at once: that is an outage of the source rather than a move. The
// tree stays as it is and one event says so; a node that joins is placed all the same.
func TestControllerBrakes(t *testing.T) {
	t.Parallel()
	f := newCluster(t, 32)
	// The debounce is long enough to see all of the change at once on a busy machine.
	config := strings.Replace(quickConfig, "{quiet: 200ms, max: 1s}", "{quiet: 2s, max: 30s}", 1)
	bed.StartController(t, f.cp, config+"brakes: {lost: 20%, moved: 20%, minNodes: 8}\n")
	f.settle(t, 15*time.Second, bed.ControllerUser)
	before, mark := f.cp.HyperNodes(t), f.cp.Audit.Mark(t)

	moved := *f // what the test does to the labels, but does not want to see in the tree
	moved.nodes = maps.Clone(f.nodes)
	for i := range 16 {
		moved.relabel(t, fmt.Sprintf("gpu-%03d", i), awsPlace(7))
	}
	refused := func() []bed.Event {
		return f.cp.Audit.Since(t, mark, func(e bed.Event) bool {
			return e.User.Username == bed.ControllerUser && e.Object.Resource == "events" &&
				strings.Contains(string(e.Body), "TopologyChangeRefused")
		})
	}
	bed.Poll(t, 15*time.Second, "an event about the refused change", func() error {
		if len(refused()) == 0 {
			return fmt.Errorf("no event")
		}
		return nil
	})
	f.add(t, "gpu-new", awsPlace(3))
	bed.Poll(t, 15*time.Second, "the new node's place", func() error { return placed(f.cp.HyperNodes(t), "gpu-new") })
	bed.Poll(t, 15*time.Second, "the new node's labels", func() error {
		node, err := f.cp.Client.CoreV1().Nodes().Get(bed.Context(t), "gpu-new", metav1.GetOptions{})
		if err == nil && node.Labels["weft.dev/tier-1"] == "" {
			err = fmt.Errorf("it has none")
		}
		return err
	})
	f.still(t, 3*time.Second, bed.ControllerUser)
	after, err := forestOf(f.cp.HyperNodes(t), len(f.keys))
	if err != nil {
		t.Fatal(err)
	}
	was, err := forestOf(before, len(f.keys))
	if err != nil {
		t.Fatal(err)
	}
	for node, path := range was.labels {
		if !slices.Equal(path, after.labels[node]) {
			t.Errorf("node %s went from %q to %q", node, path, after.labels[node])
		}
	}
	if n := len(refused()); n != 1 {
		t.Errorf("%d events about one refused change: %v", n, refused())
	}
	replay(t, before, f.cp.Audit.Since(t, mark, bed.HyperNodeWrites(bed.ControllerUser)))
}

// placed is nil if some HyperNode of tier 1 lists the node.
func placed(all map[string]bed.HyperNode, node string) error {
	for _, hn := range all {
		if slices.Contains(hn.Members, bed.Member{Type: "Node", Name: node}) {
			return nil
		}
	}
	return fmt.Errorf("node %s is in no HyperNode", node)
}

// An object of weft's that somebody deletes is made again.
func TestControllerDeletedByHand(t *testing.T) {
	t.Parallel()
	f := newCluster(t, 16)
	bed.StartController(t, f.cp, quickConfig)
	f.settle(t, 15*time.Second, bed.ControllerUser)
	leaf := f.holder(t, "gpu-000", 1)
	mark := f.cp.Audit.Mark(t)
	f.cp.DeleteHyperNode(t, leaf)
	f.settle(t, 15*time.Second, bed.ControllerUser)
	if got := names(f.cp.Audit.Since(t, mark, bed.HyperNodeWrites(bed.ControllerUser))); !slices.Contains(got, "create "+leaf) {
		t.Errorf("writes after %s was deleted: %q", leaf, got)
	}
}

// --once does its work and ends; --dry-run writes nothing at the server.
func TestControllerOnce(t *testing.T) {
	t.Parallel()
	f := newCluster(t, 16)
	mark := f.cp.Audit.Mark(t)
	run := func(args ...string) {
		t.Helper()
		c := bed.StartController(t, f.cp, quickConfig, args...)
		if code, err := c.Wait(60 * time.Second); err != nil || code != 0 {
			t.Fatalf("weft-controller %q: exit status %d, %v:\n%s", args, code, err, c.Tail(20))
		}
	}
	run("--once", "--dry-run")
	if events := f.cp.Audit.Since(t, mark, bed.Writes(bed.ControllerUser)); len(events) > 0 {
		for _, e := range events {
			if !strings.Contains(e.URI, "dryRun=All") {
				t.Errorf("--dry-run wrote: %v", e)
			}
		}
	}
	if n := len(f.cp.HyperNodes(t)); n != 0 {
		t.Fatalf("--dry-run left %d HyperNodes", n)
	}

	out := filepath.Join(bed.Dir(t), "manifests")
	run("--once", "--output", out)
	if n := len(f.cp.HyperNodes(t)); n != 0 {
		t.Errorf("--output left %d HyperNodes on the server", n)
	}

	run("--once")
	if err := f.right(t); err != nil {
		t.Error(err)
	}
	mark = f.cp.Audit.Mark(t)
	run("--once")
	if events := f.cp.Audit.Since(t, mark, bed.Writes(bed.ControllerUser)); len(events) > 0 {
		t.Errorf("a second --once wrote %v", events)
	}
}
