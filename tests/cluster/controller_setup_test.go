// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weft.dev/weft/tests/cluster/bed"
)

// A kubeconfig with a client certificate instead of a token.
func TestControllerClientCertificate(t *testing.T) {
	t.Parallel()
	f := newCluster(t, 8)
	dir := bed.Dir(t)
	kubeconfig := f.cp.Kubeconfig(t, filepath.Join(dir, "kubeconfig"), bed.ControllerUser)
	bed.StartControllerAs(t, f.cp, dir, kubeconfig, quickConfig)
	f.settle(t, 15*time.Second, bed.ControllerUser)
}

// As in a pod: no kubeconfig, but a service account's folder and the server's address in the
// environment.
func TestControllerInCluster(t *testing.T) {
	t.Parallel()
	if why := os.Getenv("WEFT_NO_KUBELET"); why != "" {
		bed.Skip(t, "%s", why) // the folder is mounted where a pod has it
	}
	f := newCluster(t, 8)
	server, err := url.Parse(f.cp.URL)
	if err != nil {
		t.Fatal(err)
	}
	dir := bed.Dir(t)
	account := filepath.Join(dir, "serviceaccount")
	bed.Write(t, filepath.Join(account, "token"), f.cp.ControllerToken(t))
	bed.Write(t, filepath.Join(account, "ca.crt"), string(f.cp.CA()))
	bed.Write(t, filepath.Join(account, "namespace"), bed.Namespace)
	config := filepath.Join(dir, "config.yaml")
	bed.Write(t, config, quickConfig)
	p := bed.Start(t, bed.Command{Name: "weft-controller", Log: filepath.Join(dir, "controller.log"), Dir: dir,
		Env: []string{"KUBERNETES_SERVICE_HOST=" + server.Hostname(), "KUBERNETES_SERVICE_PORT=" + server.Port(),
			"POD_NAME=weft-controller-0", "POD_NAMESPACE=" + bed.Namespace, "KUBECONFIG=/nowhere", "ACCOUNT=" + account},
		Argv: []string{"unshare", "--mount", "--propagation", "private", "sh", "-euc",
			`mount -n -t tmpfs tmpfs /run; mkdir -p /run/secrets/kubernetes.io/serviceaccount
			mount -n --bind "$ACCOUNT" /run/secrets/kubernetes.io/serviceaccount; exec "$@"`, "sh",
			bed.Program(t, "weft-controller"), "--config", config}})
	f.settle(t, 15*time.Second, bed.ControllerUser)
	if code, err := p.End(syscall.SIGTERM, 30*time.Second); code != 0 || err != nil {
		t.Errorf("exit status %d, %v:\n%s", code, err, p.Tail(20))
	}
}

// Label keys of one's own, and values that mean something only below their parent: rack r1 is
// there in every row.
func TestControllerOwnKeys(t *testing.T) {
	t.Parallel()
	f := newCluster(t, 0)
	f.keys = []string{"example.com/rack", "example.com/row"}
	for i := range 12 {
		f.add(t, fmt.Sprintf("gpu-%03d", i), map[string]string{gpuLabel: "true",
			f.keys[0]: fmt.Sprint("r", i%2), f.keys[1]: fmt.Sprint("row", i/4)})
	}
	bed.StartController(t, f.cp, `apiVersion: weft.dev/v1alpha1
kind: ControllerConfig
nodeSelector: "nvidia.com/gpu.present=true"
tiers: [rack, row]
sources:
- labels: {keys: [example.com/rack, example.com/row]}
debounce: {quiet: 200ms, max: 1s}
`)
	f.settle(t, 15*time.Second, bed.ControllerUser)
	if got, want := len(f.cp.HyperNodes(t)), 6+3; got != want {
		t.Errorf("%d HyperNodes, want %d", got, want)
	}
}

// Two controllers: one leads and the other waits; when the first leaves, the second goes on at once,
// with nothing to write but what is new.
func TestControllerTwo(t *testing.T) {
	t.Parallel()
	f := newCluster(t, 16)
	all := []*bed.Controller{bed.StartController(t, f.cp, quickConfig), bed.StartController(t, f.cp, quickConfig)}
	f.settle(t, 15*time.Second, bed.ControllerUser)
	writes := f.cp.Audit.Since(t, 0, bed.HyperNodeWrites(bed.ControllerUser))
	if len(writes) != 14 {
		t.Errorf("%d HyperNode writes by two controllers, want 14: %q", len(writes), names(writes))
	}
	leader := slices.IndexFunc(all, func(c *bed.Controller) bool { return strings.Contains(c.Output(), "event=leading") })
	if leader < 0 {
		t.Fatal("no controller says that it leads")
	}
	if strings.Contains(all[1-leader].Output(), "event=leading") {
		t.Fatal("both controllers say that they lead")
	}
	mark := f.cp.Audit.Mark(t)
	holder := f.leaseHolder(t)
	all[leader].Stop(t)
	f.relabel(t, "gpu-000", awsPlace(7))
	f.settle(t, 5*time.Second, bed.ControllerUser)
	if now := f.leaseHolder(t); now == holder || now == "" {
		t.Errorf("the Lease is held by %q, was held by %q", now, holder)
	}
	if got := f.cp.Audit.Since(t, mark, bed.HyperNodeWrites(bed.ControllerUser)); len(got) != 2 {
		t.Errorf("writes of the second controller: %q, want one release and one claim", names(got))
	}
}

func (f *fleet) leaseHolder(t *testing.T) string {
	t.Helper()
	lease, err := f.cp.Client.CoordinationV1().Leases(bed.Namespace).Get(bed.Context(t), "weft-controller", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}
