// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"weft.dev/weft/tests/cluster/bed"
)

// Of a Node the controller's account may change labels of weft and nothing else.
func TestNodeLabelPolicy(t *testing.T) {
	t.Parallel()
	cp := bed.NewControlPlane(t)
	cp.InstallController(t)
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1",
		Labels: map[string]string{"team": "a", "weft.dev/exclude": "false"}, Annotations: map[string]string{"note": "x"}}}
	if _, err := cp.Client.CoreV1().Nodes().Create(bed.Context(t), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(&rest.Config{Host: cp.URL, BearerToken: cp.ControllerToken(t),
		TLSClientConfig: rest.TLSClientConfig{CAData: cp.CA()}})
	if err != nil {
		t.Fatal(err)
	}
	try := func(kind types.PatchType, body string) error {
		options := metav1.PatchOptions{FieldManager: "weft-controller-labels"}
		if kind == types.ApplyPatchType {
			force := true
			options.Force = &force
		}
		_, err := client.CoreV1().Nodes().Patch(bed.Context(t), "n1", kind, []byte(body), options)
		return err
	}
	denied := []string{
		`{"metadata":{"labels":{"team":"b"}}}`,
		`{"metadata":{"labels":{"team":null}}}`,
		`{"metadata":{"labels":{"node-role.kubernetes.io/control-plane":""}}}`,
		`{"metadata":{"labels":{"weft.devil/x":"1"}}}`,
		`{"metadata":{"labels":{"weft.dev/tier-1":"x","team":"b"}}}`,
		`{"metadata":{"annotations":{"note":"y"}}}`,
		`{"metadata":{"annotations":null}}`,
		`{"metadata":{"finalizers":["example.com/stay"]}}`,
		`{"spec":{"unschedulable":true}}`,
		`{"spec":{"taints":[{"key":"k","effect":"NoExecute"}]}}`,
	}
	tries := 0
	bed.Poll(t, 20*time.Second, "the policy to be in force", func() error {
		tries++ // what the Node says already is no change
		if err := try(types.MergePatchType, fmt.Sprintf(`{"metadata":{"labels":{"probe":"%d"}}}`, tries)); err == nil {
			return fmt.Errorf("another's label was written")
		}
		return nil
	})
	for _, body := range denied {
		if err := try(types.MergePatchType, body); !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v, want it forbidden", body, err)
		}
	}
	if err := try(types.ApplyPatchType, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1","labels":{"weft.dev/tier-1":"a","team":"b"}}}`); !apierrors.IsForbidden(err) {
		t.Errorf("an apply with another's label: %v, want it forbidden", err)
	}
	for _, body := range []string{
		`{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1","labels":{"weft.dev/tier-1":"a","weft.dev/tier-2":"b"}}}`,
		`{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1","labels":{"weft.dev/tier-1":"c"}}}`,
		`{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1","labels":{}}}`,
	} {
		if err := try(types.ApplyPatchType, body); err != nil {
			t.Errorf("%s: %v", body, err)
		}
	}
	if err := try(types.MergePatchType, `{"metadata":{"labels":{"weft.dev/tier-7":null}}}`); err != nil {
		t.Error(err)
	}
	// others are not meant
	if _, err := cp.Client.CoreV1().Nodes().Patch(bed.Context(t), "n1", types.MergePatchType,
		[]byte(denied[0]), metav1.PatchOptions{}); err != nil {
		t.Errorf("admin: %v", err)
	}
}
