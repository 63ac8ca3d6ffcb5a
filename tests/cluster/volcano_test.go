// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weft.dev/weft/tests/cluster/bed"
)

const podGroup = `apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: gang, namespace: default}
spec:
  minMember: 2
  queue: default
  networkTopology: {mode: hard, highestTierAllowed: 1}
`

// The real scheduler on weft's tree: a gang of two whole nodes that must stay in one leaf gets the
// one leaf that has two nodes free.
func TestVolcanoGang(t *testing.T) {
	bed.SchedulerProgram(t)
	t.Parallel()
	f := newCluster(t, 16) // eight leaves of two nodes
	text, err := os.ReadFile("testdata/volcano-crds.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f.cp.Create(t, bed.Objects(t, text))
	for name := range f.nodes {
		ready(t, f.cp, name)
	}
	bed.StartController(t, f.cp, quickConfig)
	f.settle(t, 15*time.Second, bed.ControllerUser)

	const free = 5 // of the other leaves the first node is taken
	for leaf := range 8 {
		if leaf != free {
			pod := wholeNode(fmt.Sprint("filler-", leaf))
			pod.Spec.NodeName = fmt.Sprintf("gpu-%03d", 2*leaf)
			create(t, f.cp, pod)
		}
	}
	p := bed.StartScheduler(t, f.cp)
	f.cp.Create(t, bed.Objects(t, []byte(podGroup)))
	for i := range 2 {
		pod := wholeNode(fmt.Sprint("gang-", i))
		pod.Annotations = map[string]string{"scheduling.k8s.io/group-name": "gang"}
		pod.Spec.SchedulerName = "volcano"
		create(t, f.cp, pod)
	}
	bed.Poll(t, 30*time.Second, "the gang is on the free leaf", func() error {
		if err := p.Check(); err != nil {
			return err
		}
		var on []string
		for i := range 2 {
			pod, err := f.cp.Client.CoreV1().Pods("default").Get(bed.Context(t), fmt.Sprint("gang-", i), metav1.GetOptions{})
			if err != nil {
				return err
			}
			on = append(on, pod.Spec.NodeName)
		}
		slices.Sort(on)
		if want := []string{fmt.Sprintf("gpu-%03d", 2*free), fmt.Sprintf("gpu-%03d", 2*free+1)}; !slices.Equal(on, want) {
			return fmt.Errorf("on %q, want %q", on, want)
		}
		return nil
	})
}

// ready gives a node what a kubelet would say of it.
func ready(t *testing.T, cp *bed.ControlPlane, node string) {
	t.Helper()
	amount := map[string]any{"cpu": "64", "memory": "256Gi", "pods": "110", bed.GPU: "8"}
	patch(t, cp, node, map[string]any{"status": map[string]any{"capacity": amount, "allocatable": amount,
		"conditions": []any{map[string]any{"type": "Ready", "status": "True", "reason": "KubeletReady"}}}}, "status")
}

// wholeNode is a pod that takes all GPUs of a node.
func wholeNode(name string) *v1.Pod {
	c := bed.Container("main", bed.GPU, 8)
	c.Resources.Limits[v1.ResourceCPU] = resource.MustParse("1")
	c.Resources.Requests = c.Resources.Limits
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.PodSpec{Containers: []v1.Container{c}}}
}

func create(t *testing.T, cp *bed.ControlPlane, pod *v1.Pod) {
	t.Helper()
	if _, err := cp.Client.CoreV1().Pods("default").Create(bed.Context(t), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}
