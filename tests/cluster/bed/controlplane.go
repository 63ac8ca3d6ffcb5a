// SPDX-License-Identifier: Apache-2.0

package bed

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// ControlPlane is a kube-apiserver on loopback TLS, with its clients and its audit log.
type ControlPlane struct {
	URL     string
	Dir     string
	Audit   *Audit
	Client  *kubernetes.Clientset // as admin
	Dynamic *dynamic.DynamicClient
	ca      *authority
	admin   *rest.Config
	server  *Process
}

const adminToken = "token-of-the-tests-admin"

// The audit log leaves reads out, keeps the bodies of what changes topology or comes from a controller
// under test, and keeps who and what of all other writes.
const auditBodies = `- {level: Request, resources: [{group: topology.volcano.sh, resources: ["*"]}]}
# a controller under test
- {level: Request, users: ["` + ControllerUser + `"]}
`

func auditPolicy(audited string) string {
	return `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- {level: None, verbs: [get, list, watch]}
` + audited + `- {level: Metadata}
`
}

// etcd is one for the run: each API server keeps its objects below a prefix of its own.
var etcd = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(run.dir, "etcd")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	port, err := freePorts(2)
	if err != nil {
		return "", err
	}
	url, peer := fmt.Sprintf("http://127.0.0.1:%d", port[0]), fmt.Sprintf("http://127.0.0.1:%d", port[1])
	p, err := start(Command{Name: "etcd", Log: filepath.Join(dir, "etcd.log"), Argv: []string{os.Getenv("WEFT_ETCD"),
		"--data-dir", filepath.Join(dir, "data"), "--unsafe-no-fsync", "--quota-backend-bytes", "8589934592",
		"--listen-client-urls", url, "--advertise-client-urls", url, "--listen-peer-urls", peer,
		"--initial-advertise-peer-urls", peer, "--initial-cluster", "default=" + peer, "--log-level", "warn"}})
	if err != nil {
		return "", err
	}
	atEnd(func() {
		p.Kill()
		_ = os.RemoveAll(filepath.Join(dir, "data")) // large, and the audit logs say what was in it
	})
	return url, nil
})

var shared = sync.OnceValues(func() (*ControlPlane, error) {
	cp, err := newControlPlane(filepath.Join(run.dir, "apiserver"), asUsual)
	if err == nil {
		atEnd(cp.server.Kill)
	}
	return cp, err
})

// Shared is the control plane that tests share which keep to Node and Pod names of their own.
func Shared(t testing.TB) *ControlPlane {
	t.Helper()
	cp, err := shared()
	if err != nil {
		run.kept = true
		t.Fatal(err)
	}
	return cp
}

// NewControlPlane starts an API server for one test: HyperNodes and CRDs are cluster-wide.
func NewControlPlane(t testing.TB) *ControlPlane { return controlPlaneFor(t, asUsual) }

// NewLeanControlPlane is one for measurements with so many objects that a small machine's server is
// busy with itself: its audit log has no bodies, and its garbage collector, which took two fifths of
// its time with 100,000 Nodes, may use more memory instead.
func NewLeanControlPlane(t testing.TB) *ControlPlane { return controlPlaneFor(t, lean) }

// plane is how an API server is set up.
type plane struct {
	audited string // rules of the audit policy
	env     []string
}

var (
	asUsual = plane{audited: auditBodies}
	lean    = plane{env: []string{"GOGC=400"}}
)

func controlPlaneFor(t testing.TB, how plane) *ControlPlane {
	t.Helper()
	cp, err := newControlPlane(Dir(t), how)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cp.server.Kill()
		if t.Failed() {
			t.Logf("audit log: %s", cp.Audit.path)
		}
	})
	return cp
}

func newControlPlane(dir string, how plane) (*ControlPlane, error) {
	var err error
	for try := 0; try < 3; try++ { // another program may take a port between the look and the use
		var cp *ControlPlane
		if cp, err = startControlPlane(filepath.Join(dir, fmt.Sprint("api", try)), how); err == nil {
			return cp, nil
		}
	}
	return nil, err
}

func startControlPlane(dir string, how plane) (*ControlPlane, error) {
	etcdURL, err := etcd()
	if err != nil {
		return nil, err
	}
	port, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	cp := &ControlPlane{Dir: dir, URL: fmt.Sprintf("https://127.0.0.1:%d", port[0]),
		Audit: &Audit{path: filepath.Join(dir, "audit.jsonl")}}
	argv, err := cp.prepare(etcdURL, port[0], how.audited)
	if err != nil {
		return nil, err
	}
	if cp.server, err = start(Command{Name: "kube-apiserver", Argv: argv, Env: how.env, Log: filepath.Join(dir, "apiserver.log")}); err != nil {
		return nil, err
	}
	if err = cp.connect(); err != nil {
		cp.server.Kill()
		return nil, err
	}
	return cp, nil
}

// prepare writes the server's files and returns its command line.
func (cp *ControlPlane) prepare(etcdURL string, port int, audited string) ([]string, error) {
	if err := os.MkdirAll(cp.Dir, 0o755); err != nil {
		return nil, err
	}
	var err error
	if cp.ca, err = newAuthority(); err != nil {
		return nil, err
	}
	server, err := cp.ca.server()
	if err != nil {
		return nil, err
	}
	cert, key, err := server.write(cp.Dir, "server")
	if err != nil {
		return nil, err
	}
	file := func(name, text string) string {
		path := filepath.Join(cp.Dir, name)
		err = errors.Join(err, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	argv := []string{os.Getenv("WEFT_KUBE_APISERVER"),
		"--etcd-servers", etcdURL, "--etcd-prefix", "/" + strings.Trim(strings.ReplaceAll(cp.Dir, "/", "-"), "-"),
		"--bind-address", "127.0.0.1", "--advertise-address", "127.0.0.1", "--secure-port", fmt.Sprint(port),
		"--endpoint-reconciler-type", "none", "--service-cluster-ip-range", "10.0.0.0/24",
		"--tls-cert-file", cert, "--tls-private-key-file", key, "--client-ca-file", file("ca.crt", string(cp.ca.PEM)),
		"--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", key,
		"--service-account-signing-key-file", key, "--authorization-mode", "Node,RBAC",
		"--token-auth-file", file("tokens.csv", adminToken+",admin,admin,system:masters\n"),
		"--audit-policy-file", file("audit-policy.yaml", auditPolicy(audited)), "--audit-log-path", cp.Audit.path,
		"--audit-log-maxsize", "2000",
		// No service account controller runs here, and no node controller to take taints off again.
		"--disable-admission-plugins", "ServiceAccount,TaintNodesByCondition",
		"--enable-admission-plugins", "NodeRestriction",
		"--max-requests-inflight", "0", "--max-mutating-requests-inflight", "0", "--enable-priority-and-fairness=false"}
	return argv, err
}

// connect makes admin's clients and waits until the server is ready.
func (cp *ControlPlane) connect() error {
	cp.admin = &rest.Config{Host: cp.URL, BearerToken: adminToken, QPS: -1, UserAgent: "weft-test",
		TLSClientConfig: rest.TLSClientConfig{CAData: cp.ca.PEM}}
	var err error
	if cp.Client, err = kubernetes.NewForConfig(cp.admin); err != nil {
		return err
	}
	if cp.Dynamic, err = dynamic.NewForConfig(cp.admin); err != nil {
		return err
	}
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		var status int
		err = cp.Client.RESTClient().Get().AbsPath("/readyz").Do(ctx).StatusCode(&status).Error()
		cancel()
		if err == nil && status == http.StatusOK {
			return nil
		}
		if gone := cp.server.Check(); gone != nil {
			return gone
		}
		if time.Since(began) > 40*time.Second*slow {
			return fmt.Errorf("kube-apiserver: not ready: %w; its last lines:\n%s", err, cp.server.Tail(25))
		}
	}
}

// CA is the certificate of the authority that signed the server's, in PEM.
func (cp *ControlPlane) CA() []byte { return cp.ca.PEM }

// Kubeconfig writes a kubeconfig for a user with a client certificate, and returns its path.
func (cp *ControlPlane) Kubeconfig(t testing.TB, path, user string, groups ...string) string {
	t.Helper()
	pair, err := cp.ca.client(user, groups...)
	if err != nil {
		t.Fatal(err)
	}
	Write(t, path, cp.kubeconfig(user, fmt.Sprintf("client-certificate-data: %s\n    client-key-data: %s",
		base64Of(pair.cert), base64Of(pair.key))))
	return path
}

// TokenKubeconfig writes a kubeconfig with a bearer token, and returns its path.
func (cp *ControlPlane) TokenKubeconfig(t testing.TB, path, token string) string {
	t.Helper()
	Write(t, path, cp.kubeconfig("token", "token: "+token))
	return path
}

func (cp *ControlPlane) kubeconfig(user, credentials string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: test
clusters:
- name: test
  cluster:
    server: %s
    certificate-authority-data: %s
users:
- name: "%s"
  user:
    %s
contexts:
- name: test
  context: {cluster: test, user: "%s", namespace: `+Namespace+`}
`, cp.URL, base64Of(cp.ca.PEM), user, credentials, user)
}
