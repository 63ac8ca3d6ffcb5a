// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weft.dev/weft/tests/cluster/bed"
)

// A source that names cloud instances, and no map of them: which Node each is comes from the Nodes'
// spec.providerID, each read once. A Node without one joins when its cloud's controller has set it.
func TestControllerInstances(t *testing.T) {
	t.Parallel()
	bed.Program(t, "weft-controller")
	cp := bed.NewControlPlane(t)
	cp.InstallController(t)
	cp.InstallHyperNodes(t, false)
	const count = 12
	type instance struct {
		InstanceID   string   `json:"InstanceId"`
		NetworkNodes []string // farthest first
	}
	var instances []instance
	want := map[string][]string{} // leaf -> nodes
	for i := range count {
		id, name, leaf := fmt.Sprintf("i-%04d", 100+i), fmt.Sprintf("ip-10-0-0-%d", i), fmt.Sprint("low-", i%3)
		instances = append(instances, instance{id, []string{"top", "mid", leaf}})
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.NodeSpec{ProviderID: "aws:///us-west-2a/" + id}}
		if i == count-1 {
			node.Spec.ProviderID = ""
		} else {
			want[leaf] = append(want[leaf], name)
		}
		if _, err := cp.Client.CoreV1().Nodes().Create(bed.Context(t), node, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(map[string]any{"Instances": instances})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(bed.Dir(t), "aws.json")
	bed.Write(t, file, string(text))
	c := bed.StartController(t, cp, fmt.Sprintf(`apiVersion: weft.dev/v1alpha1
kind: ControllerConfig
tiers: [leaf, spine, core]
sources:
- awsApiFile: {file: %s}
debounce: {quiet: 200ms, max: 1s}
outputs: {labels: false}
`, file))
	right := func() error {
		sets := map[string]bool{}
		for _, hn := range cp.HyperNodes(t) {
			if hn.Tier == 1 {
				var names []string
				for _, m := range hn.Members {
					names = append(names, m.Name)
				}
				sets[setOf(names)] = true
			}
		}
		expected := map[string]bool{}
		for _, names := range want {
			expected[setOf(slices.Clone(names))] = true
		}
		if !maps.Equal(sets, expected) {
			return fmt.Errorf("leaves %v, want %v\n%s", sets, expected, c.Tail(3))
		}
		return nil
	}
	bed.Poll(t, 15*time.Second, "leaves by providerID", right)
	reads := func() int {
		text, err := cp.Client.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(bed.Context(t))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			var n float64
			if strings.HasPrefix(line, "apiserver_request_total{") && strings.Contains(line, `code="200"`) &&
				strings.Contains(line, `resource="nodes"`) && strings.Contains(line, `verb="GET"`) {
				_, _ = fmt.Sscan(line[strings.LastIndexByte(line, ' ')+1:], &n)
				return int(n)
			}
		}
		return 0
	}
	if got := reads(); got != count {
		t.Errorf("%d Nodes were read, want each of %d once", got, count)
	}
	// one more Node is one more read
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "ip-10-0-0-99"}, Spec: v1.NodeSpec{ProviderID: "aws:///us-west-2a/i-0200"}}
	instances = append(instances, instance{"i-0200", []string{"top", "mid", "low-0"}})
	if text, err = json.Marshal(map[string]any{"Instances": instances}); err != nil {
		t.Fatal(err)
	}
	bed.Write(t, file, string(text))
	if _, err := cp.Client.CoreV1().Nodes().Create(bed.Context(t), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	want["low-0"] = append(want["low-0"], node.Name)
	bed.Poll(t, 15*time.Second, "the new node's leaf", right)
	if got := reads(); got != count+1 {
		t.Errorf("%d reads of Nodes, want %d", got, count+1)
	}
}
