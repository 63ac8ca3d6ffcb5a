// SPDX-License-Identifier: Apache-2.0

package bed

import (
	"net/http"
	"path/filepath"
	"testing"

	"weft.dev/weft/tests/cluster/bed/fakeapi"
)

// Fake is an API server in memory. Each way to it is a Proxy.
type Fake struct {
	*fakeapi.Server
	ca *authority
}

// Tokens of the fake's users.
const (
	FakeAdmin = "admin"
	fakeToken = "token-of-the-controller"
)

// NewFake is an empty one that has the namespaces that are needed.
func NewFake(t testing.TB) *Fake {
	t.Helper()
	f := &Fake{Server: fakeapi.New(), ca: newStranger(t)}
	f.AddUser(fakeToken, ControllerUser)
	f.AddUser(adminToken, FakeAdmin)
	for _, name := range []string{"default", Namespace} {
		_, err := f.AsAdmin(http.MethodPost, "/api/v1/namespaces", fakeapi.Object{"apiVersion": "v1", "kind": "Namespace",
			"metadata": fakeapi.Object{"name": name}})
		if err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// NewWay is a way to the fake for one client, with faults of its own.
func (f *Fake) NewWay(t testing.TB) *Proxy {
	t.Helper()
	return newProxy(t, f.ca, f.Server)
}

// StartController starts weft-controller on its way to the fake.
func (f *Fake) StartController(t testing.TB, way *Proxy, config string, args ...string) *Controller {
	t.Helper()
	dir := Dir(t)
	kubeconfig := filepath.Join(dir, "kubeconfig")
	way.Kubeconfig(t, kubeconfig, fakeToken)
	c := newController(t, dir, kubeconfig, config, args...)
	c.free = func() error {
		_, err := f.AsAdmin(http.MethodDelete, "/apis/coordination.k8s.io/v1/namespaces/"+Namespace+"/leases/weft-controller", nil)
		if fakeapi.IsNotFound(err) {
			err = nil
		}
		return err
	}
	c.Restart(t)
	return c
}

// Do is a request by admin that must succeed.
func (f *Fake) Do(t testing.TB, method, path string, body fakeapi.Object) fakeapi.Object {
	t.Helper()
	object, err := f.AsAdmin(method, path, body)
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// AsAdmin is a request by admin.
func (f *Fake) AsAdmin(method, path string, body fakeapi.Object) (fakeapi.Object, error) {
	return f.Ask(adminToken, method, path, body)
}
