// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weft.dev/weft/tests/cluster/bed"
)

// refuseHyperNodes lets every write of a HyperNode fail, as a webhook without its service does,
// until the function that it returns is called.
func refuseHyperNodes(t *testing.T, cp *bed.ControlPlane) (accept func()) {
	t.Helper()
	fail, none, path := admissionv1.Fail, admissionv1.SideEffectClassNone, "/validate"
	rule := admissionv1.RuleWithOperations{Operations: []admissionv1.OperationType{"CREATE", "UPDATE"},
		Rule: admissionv1.Rule{APIGroups: []string{"topology.volcano.sh"}, APIVersions: []string{"*"}, Resources: []string{"hypernodes"}}}
	service := &admissionv1.ServiceReference{Namespace: "volcano-system", Name: "away", Path: &path}
	hook := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "hypernodes"},
		Webhooks: []admissionv1.ValidatingWebhook{{Name: "hypernodes.volcano.sh", FailurePolicy: &fail, SideEffects: &none,
			AdmissionReviewVersions: []string{"v1"}, Rules: []admissionv1.RuleWithOperations{rule},
			ClientConfig: admissionv1.WebhookClientConfig{Service: service}}}}
	hooks := cp.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	if _, err := hooks.Create(bed.Context(t), hook, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := hooks.Delete(bed.Context(t), hook.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// awaitRefused waits until the server has refused that many writes of HyperNodes.
func (f *fleet) awaitRefused(t *testing.T, count int) {
	t.Helper()
	refused := func(e bed.Event) bool { return bed.HyperNodeWrites(bed.ControllerUser)(e) && !e.OK() }
	bed.Poll(t, 60*time.Second, "refused writes", func() error {
		if got := len(f.cp.Audit.Since(t, 0, refused)); got < count {
			return fmt.Errorf("%d of %d", got, count)
		}
		return nil
	})
}

// A webhook that refuses is waited for as long as it takes, and is not taken for somebody who
// changes objects back.
func TestControllerWebhookDown(t *testing.T) {
	t.Parallel()
	f := newCluster(t, 16)
	c := bed.StartController(t, f.cp, quickConfig)
	f.wait(t, 15*time.Second)
	accept := refuseHyperNodes(t, f.cp)
	f.relabel(t, "gpu-011", awsPlace(7))
	f.awaitRefused(t, 5)
	accept()
	f.settle(t, 40*time.Second, bed.ControllerUser)
	if strings.Contains(c.Output(), "WritesUndone") {
		t.Error("it says that somebody changes objects back")
	}
}
