// SPDX-License-Identifier: Apache-2.0

package bed

import (
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	authv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Where manifests/ puts the controller, and what the API server then calls it.
const (
	Namespace      = "weft-system"
	ControllerUser = "system:serviceaccount:" + Namespace + ":weft-controller"
)

// InstallController makes the namespace, the service account, the rights that manifests/ give the
// controller and the policy that narrows them: it runs with these and no more.
func (cp *ControlPlane) InstallController(t testing.TB) {
	t.Helper()
	cp.Create(t, Kinds(Kustomize(t, Repo("manifests")), "Namespace", "ServiceAccount", "ClusterRole",
		"ClusterRoleBinding", "Role", "RoleBinding", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"))
}

// ControllerToken is a token of the controller's service account.
func (cp *ControlPlane) ControllerToken(t testing.TB) string {
	t.Helper()
	expiry := int64(3600)
	request, err := cp.Client.CoreV1().ServiceAccounts(Namespace).CreateToken(Context(t), "weft-controller",
		&authv1.TokenRequest{Spec: authv1.TokenRequestSpec{ExpirationSeconds: &expiry}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// Controller is a weft-controller process and what starts it again.
type Controller struct {
	*Process
	Dir     string
	Config  string       // path
	free    func() error // of its Lease
	command Command
}

// StartController starts weft-controller with a configuration and as the service account of
// manifests/.
func StartController(t testing.TB, cp *ControlPlane, config string, args ...string) *Controller {
	t.Helper()
	dir := Dir(t)
	kubeconfig := filepath.Join(dir, "kubeconfig")
	cp.TokenKubeconfig(t, kubeconfig, cp.ControllerToken(t))
	return StartControllerAs(t, cp, dir, kubeconfig, config, args...)
}

// StartControllerAs is the same with a kubeconfig.
func StartControllerAs(t testing.TB, cp *ControlPlane, dir, kubeconfig, config string, args ...string) *Controller {
	t.Helper()
	c := newController(t, dir, kubeconfig, config, args...)
	c.free = func() error {
		err := cp.Client.CoordinationV1().Leases(Namespace).Delete(Context(t), "weft-controller", metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			err = nil
		}
		return err
	}
	c.Restart(t)
	return c
}

func newController(t testing.TB, dir, kubeconfig, config string, args ...string) *Controller {
	t.Helper()
	c := &Controller{Dir: dir, Config: filepath.Join(dir, "config.yaml")}
	Write(t, c.Config, config)
	argv := []string{Program(t, "weft-controller"), "--kubeconfig", kubeconfig}
	if config != "" { // --uninstall has none
		argv = append(argv, "--config", c.Config)
	}
	c.command = Command{Name: "weft-controller", Log: filepath.Join(dir, "controller.log"),
		Argv: append(argv, args...),
		Env:  []string{"POD_NAME=weft-controller-test", "POD_NAMESPACE=" + Namespace}}
	t.Cleanup(func() {
		if c.Process != nil {
			endOwn(t, c.Process)
		}
	})
	return c
}

// Crash kills the controller and frees its Lease: what waiting until the Lease has run out does.
func (c *Controller) Crash(t testing.TB) {
	t.Helper()
	c.Process.Kill()
	c.Free(t)
}

// Free frees the Lease, whoever holds it.
func (c *Controller) Free(t testing.TB) {
	t.Helper()
	if err := c.free(); err != nil {
		t.Fatal(err)
	}
}

// Restart starts the controller again.
func (c *Controller) Restart(t testing.TB) {
	t.Helper()
	p, err := start(c.command)
	if err != nil {
		t.Fatalf("%s: %v", c.command.Name, err)
	}
	c.Process = p
}

// DryRun is what the controller would do now.
func (c *Controller) DryRun(t testing.TB) string {
	t.Helper()
	out, err := exec.Command(c.command.Argv[0], append(c.command.Argv[1:], "--dry-run")...).CombinedOutput()
	if err != nil {
		t.Fatalf("weft-controller --dry-run: %v:\n%s", err, out)
	}
	return string(out)
}

// Stop asks the controller to leave.
func (c *Controller) Stop(t testing.TB) {
	t.Helper()
	if code, err := c.End(syscall.SIGTERM, 10e9*slow); err != nil || code != 0 {
		t.Fatalf("weft-controller after SIGTERM: exit status %d, %v", code, err)
	}
}
