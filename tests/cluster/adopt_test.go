// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"weft.dev/weft/tests/cluster/bed"
	"weft.dev/weft/tests/cluster/bed/fakeapi"
)

// The tree that Volcano's label source makes of the fleet: names of its own, the label keys as
// tierNames, the same groups.
func (s *small) makeVolcanoTree(t *testing.T) {
	t.Helper()
	made := map[string][]bed.Member{} // HyperNode -> members
	tier := map[string]int64{}
	for _, name := range slices.Sorted(maps.Keys(s.fleet.nodes)) {
		child := bed.Member{Type: "Node", Name: name}
		for i, key := range awsKeys {
			parent := fmt.Sprintf("hypernode-topo-tier%d-%s", i+1, strings.TrimPrefix(s.fleet.nodes[name][key], "nn-"))
			tier[parent] = int64(i + 1)
			if !slices.Contains(made[parent], child) {
				made[parent] = append(made[parent], child)
			}
			child = bed.Member{Type: "HyperNode", Name: parent}
		}
	}
	for name, members := range made {
		s.makeHyperNode(t, name, tier[name], map[string]any{"volcano.sh/network-topology-source": "label"}, members...)
		if tier[name] == 1 && strings.HasSuffix(name, "leaf0000") {
			s.Do(t, http.MethodPatch, hyperNodePath+"/"+name, fakeapi.Object{"metadata": fakeapi.Object{
				"labels": fakeapi.Object{"volcano.sh/network-topology-source": nil}}}) // by hand
		}
	}
}

// HyperNodes of Volcano's label source become ours: refused while the source is on; then each with one
// write that changes labels alone, with never a second parent, and the controller has nothing left
// to move.
func TestAdopt(t *testing.T) {
	t.Parallel()
	s := newSmall(t, 16)
	s.makeVolcanoTree(t)
	c := s.StartController(t, s.way, slowConfig)
	bed.Poll(t, 15*time.Second, "the controller to stand back", func() error {
		if !strings.Contains(c.Output(), "event=ForeignNode") {
			return fmt.Errorf("%s", c.Tail(3))
		}
		return nil
	})
	s.Do(t, http.MethodPost, "/api/v1/namespaces", fakeapi.Object{"apiVersion": "v1", "kind": "Namespace", "metadata": fakeapi.Object{"name": "volcano-system"}})
	config := func(on bool) fakeapi.Object {
		return fakeapi.Object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": fakeapi.Object{"name": "volcano-controller-configmap", "namespace": "volcano-system"},
			"data": fakeapi.Object{"volcano-controller.conf": fmt.Sprintf("networkTopologyDiscovery:\n- source: label\n  enabled: %v\n", on)}}
	}
	const configMaps = "/api/v1/namespaces/volcano-system/configmaps"
	s.Do(t, http.MethodPost, configMaps, config(true))
	mark := s.mark()
	if out, code := s.Ctl(t, s.way, "adopt"); code != 1 || !strings.Contains(out, "label source is on") {
		t.Fatalf("with the source on: %d, %s", code, out)
	}
	// of a release that is not there, nothing is known
	if out, code := s.Ctl(t, s.way, "adopt", "--dry-run", "--volcano-release", "vulcano"); code != 0 ||
		!strings.Contains(out, "no ConfigMap volcano-system/vulcano-controller-configmap: Volcano's label source is taken to be off") {
		t.Errorf("with another release's name: %d, %s", code, out)
	}
	s.Do(t, http.MethodPut, configMaps+"/volcano-controller-configmap", config(false))
	if out, code := s.Ctl(t, s.way, "adopt", "--dry-run"); code != 0 || !strings.Contains(out, "14 HyperNodes to adopt") {
		t.Fatalf("dry run: %d, %s", code, out)
	}
	if n := len(s.changesOf(mark, "hypernodes")); n != 0 {
		t.Fatalf("%d HyperNodes changed by a refusal and a dry run", n)
	}
	before := s.hyperNodes(t)
	out, code := s.Ctl(t, s.way, "adopt")
	if code != 0 || !strings.Contains(out, "14 HyperNodes adopted") {
		t.Fatalf("%d, %s", code, out)
	}
	s.wait(t, 20*time.Second)
	s.sound(t, mark)
	for name, hn := range s.hyperNodes(t) {
		was, known := before[name]
		if !ours(hn) || !known || !slices.Equal(hn.Members, was.Members) {
			t.Errorf("%s is now %v, was %v", name, hn, was)
		}
	}
	for _, change := range s.changesOf(mark, "hypernodes") {
		if change.Verb != "update" {
			t.Errorf("%s %s by %s", change.Verb, change.Name, change.User)
		}
	}
	if out, code := s.Ctl(t, s.way, "adopt"); code != 0 || !strings.Contains(out, "0 HyperNodes adopted") {
		t.Errorf("once more: %d, %s", code, out)
	}
	c.Stop(t)
}

func (s *small) changesOf(mark int, plural string) []fakeapi.Change {
	var all []fakeapi.Change
	for _, change := range s.Changes(mark) {
		if change.Resource == plural {
			all = append(all, change)
		}
	}
	return all
}
