// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"weft.dev/weft/tests/cluster/bed"
)

// kubetool is pkg/kube by hand: it runs one verb against a control plane and prints what happened.
type kubetool struct {
	cp         *bed.ControlPlane
	dir        string
	kubeconfig string
	runs       int
}

func newKubetool(t *testing.T, cp *bed.ControlPlane) *kubetool {
	t.Helper()
	path := filepath.Join(os.Getenv("WEFT_BUILD"), "fakes", "kubetool")
	if _, err := os.Stat(path); err != nil {
		bed.Skip(t, "kubetool is not built: %v", err)
	}
	dir := bed.Dir(t)
	if cp == nil {
		return &kubetool{dir: dir}
	}
	return &kubetool{cp: cp, dir: dir, kubeconfig: cp.Kubeconfig(t, filepath.Join(dir, "kubeconfig"), "kubetool", "system:masters")}
}

func (k *kubetool) start(t *testing.T, args ...string) *bed.Process {
	t.Helper()
	k.runs++
	return bed.Start(t, bed.Command{
		Name: "kubetool " + args[0],
		Argv: append([]string{filepath.Join(os.Getenv("WEFT_BUILD"), "fakes", "kubetool"), k.kubeconfig}, args...),
		Log:  filepath.Join(k.dir, fmt.Sprintf("kubetool-%d.log", k.runs)),
	})
}

// call runs a verb to its end and returns the fields of the line it prints.
func (k *kubetool) call(t *testing.T, args ...string) map[string]string {
	t.Helper()
	p := k.start(t, args...)
	if _, err := p.Wait(60 * time.Second); err != nil {
		t.Fatal(err)
	}
	return fields(p.Output())
}

func fields(line string) map[string]string {
	found := map[string]string{}
	for _, m := range regexp.MustCompile(`(\w+)=(\S*)`).FindAllStringSubmatch(line, -1) {
		if _, ok := found[m[1]]; !ok {
			found[m[1]] = m[2]
		}
	}
	return found
}

func (k *kubetool) body(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(k.dir, name)
	bed.Write(t, path, text)
	return path
}

func has(p *bed.Process, line string) func() error {
	return func() error {
		if err := p.Check(); err != nil {
			return err
		}
		if !strings.Contains(p.Output(), line) {
			return fmt.Errorf("no %q in\n%s", line, p.Tail(5))
		}
		return nil
	}
}

// A server that refuses a request before it has read its body (for want of a right, or for too many
// of them) ends the stream while the client still sends. The refusal is known nevertheless.
func TestKubeRefusedUnread(t *testing.T) {
	t.Parallel()
	fake := bed.NewFake(t)
	way := fake.NewWay(t)
	k := newKubetool(t, nil)
	k.kubeconfig = filepath.Join(k.dir, "kubeconfig")
	way.Kubeconfig(t, k.kubeconfig, "nobody-asks-for-it")
	way.Judge(func(*http.Request) bed.Fault {
		return bed.Fault{Status: http.StatusTooManyRequests, Reason: "TooManyRequests", Message: "later", RetryAfter: 3}
	})
	big := k.body(t, "big.json", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"big"},"data":{"x":"`+strings.Repeat("x", 900_000)+`"}}`)
	small := k.body(t, "small.json", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"small"}}`)
	for range 10 {
		for _, body := range []string{big, small} {
			got := k.call(t, "create", "/api/v1/namespaces/default/configmaps", body)
			if got["status"] != "429" || got["unknown"] != "0" || got["retry_after"] != "3" {
				t.Errorf("%s: %v", filepath.Base(body), got)
			}
		}
	}
}

// A list, streamed or of three pages, and the watch after it, over one HTTP/2 connection, as protobuf
// metadata and as whole JSON objects.
func TestKubeFollow(t *testing.T) {
	t.Parallel()
	cp := bed.NewControlPlane(t)
	k := newKubetool(t, cp)
	const count = 1201
	ctx := bed.Context(t)
	nodes := cp.Client.CoreV1().Nodes()
	for i := range count {
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n-%04d", i), Labels: map[string]string{"l": strconv.Itoa(i), "m": "x"}}}
		if _, err := nodes.Create(ctx, node, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, way := range []struct{ codec, pageSize, requests string }{{"metadata", "0", "1"}, {"metadata", "500", "3"},
		{"json", "0", "1"}, {"json", "500", "3"}} {
		codec := way.codec
		p := k.start(t, "follow", "/api/v1/nodes", codec, "600", way.pageSize)
		bed.Poll(t, 20*time.Second, "synced", has(p, "synced objects=1201 labels=2402 "))
		synced := fields(p.Output()[strings.Index(p.Output(), "synced"):])
		if synced["requests"] != way.requests || synced["connections"] != "1" || synced["http2"] != way.requests {
			t.Errorf("%v: %v, want %s requests on one HTTP/2 connection", way, synced, way.requests)
		}
		name := "extra-" + codec + way.pageSize
		node, err := nodes.Create(ctx, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		doc := map[string]string{"metadata": "0", "json": "1"}[codec]
		line := func(what string, n *v1.Node, labels int) string {
			return fmt.Sprintf("%s %s uid=%s resourceVersion=%s labels=%d deleting=0 doc=%s\n", what, name, n.UID, n.ResourceVersion, labels, doc)
		}
		bed.Poll(t, 5*time.Second, "added", has(p, line("added", node, 0)))
		node, err = nodes.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		bed.Poll(t, 5*time.Second, "modified", has(p, line("modified", node, 1)))
		if err := nodes.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		bed.Poll(t, 5*time.Second, "deleted", has(p, "deleted "+name+" uid="+string(node.UID)))
		if strings.Contains(p.Output(), "error") {
			t.Errorf("%s: errors in\n%s", codec, p.Output())
		}
	}
}

// What the server answers to each kind of write, and that preconditions hold.
func TestKubeWrites(t *testing.T) {
	t.Parallel()
	cp := bed.NewControlPlane(t)
	k := newKubetool(t, cp)
	const nodes = "/api/v1/nodes"
	path := nodes + "/w-1"
	expect := func(what string, got map[string]string, status, code, reason string) {
		t.Helper()
		if got["status"] != status || got["code"] != code || got["reason"] != reason || got["unknown"] != "0" {
			t.Errorf("%s: %v, want status %s code %s reason %q", what, got, status, code, reason)
		}
	}
	node := k.body(t, "node.json", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"w-1","labels":{"a":"b"}}}`)
	label := k.body(t, "label.json", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"w-1","labels":{"weft.dev/tier-1":"x"}}}`)
	expect("missing", k.call(t, "get", path), "404", "-2", "NotFound")
	created := k.call(t, "create", nodes, node)
	expect("create", created, "201", "0", "")
	refused := k.call(t, "create", nodes, node)
	expect("create again", refused, "409", "-17", "AlreadyExists")
	if events := cp.Audit.Since(t, 0, func(e bed.Event) bool { return e.ID == refused["audit"] }); len(events) != 1 || events[0].Name() != "w-1" {
		t.Errorf("the audit log has %v of request %q", events, refused["audit"])
	}
	expect("unknown field", k.call(t, "create", nodes, k.body(t, "odd.json", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"w-2"},"spec":{"nope":1}}`)), "400", "-22", "BadRequest")
	applied := k.call(t, "apply", path, label)
	expect("apply", applied, "200", "0", "")
	again := k.call(t, "apply", path, label)
	if again["resourceVersion"] != applied["resourceVersion"] {
		t.Errorf("the same apply wrote again: %v after %v", again, applied)
	}
	stale := k.body(t, "stale.json", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"w-1","resourceVersion":"`+created["resourceVersion"]+`"}}`)
	expect("stale replace", k.call(t, "replace", path, stale), "409", "-116", "Conflict")
	fresh := k.body(t, "fresh.json", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"w-1","resourceVersion":"`+applied["resourceVersion"]+`"}}`)
	replaced := k.call(t, "replace", path, fresh)
	expect("replace", replaced, "200", "0", "")
	expect("patch", k.call(t, "patch", path, k.body(t, "patch.json", `{"metadata":{"annotations":{"x":"y"}}}`)), "200", "0", "")
	expect("delete of an old version", k.call(t, "delete", path, created["uid"], replaced["resourceVersion"]), "409", "-116", "Conflict")
	expect("delete of another uid", k.call(t, "delete", path, "another"), "409", "-116", "Conflict")
	if _, err := cp.Client.CoreV1().Nodes().Get(bed.Context(t), "w-1", metav1.GetOptions{}); err != nil {
		t.Errorf("a refused delete deleted: %v", err)
	}
	expect("delete", k.call(t, "delete", path, created["uid"]), "200", "0", "")
	expect("event", k.call(t, "event", "w-1", "two HCAs are swapped"), "201", "0", "")
	events, err := cp.Client.EventsV1().Events("default").List(bed.Context(t), metav1.ListOptions{})
	if err != nil || len(events.Items) == 0 {
		t.Fatalf("no event: %v", err)
	}
	if e := events.Items[len(events.Items)-1]; e.Note != "two HCAs are swapped" || e.Regarding.Kind != "Node" || e.Type != "Warning" {
		t.Errorf("event %+v", e)
	}
}

// wire forwards TCP connections and can freeze those it has: they stay open and nothing passes any
// more, as behind a load balancer that has lost its state.
type wire struct {
	listener net.Listener
	target   string
	mu       sync.Mutex
	frozen   *atomic.Bool // of the connections made since the last freeze
	made     int
	last     atomic.Int64 // when something passed, ns
}

func newWire(t *testing.T, target string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{listener: l, target: target, frozen: new(atomic.Bool)}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", target)
			if err != nil {
				_ = near.Close()
				continue
			}
			w.mu.Lock()
			w.made++
			frozen := w.frozen
			w.mu.Unlock()
			go w.pass(near, far, frozen)
			go w.pass(far, near, frozen)
		}
	}()
	return w
}

func (w *wire) pass(from, to net.Conn, frozen *atomic.Bool) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		switch {
		case err != nil && frozen.Load():
			return // the other side learns nothing of it
		case err != nil:
			_ = to.Close()
			return
		case frozen.Load():
			continue // taken and acknowledged, but it goes nowhere
		}
		if _, err := to.Write(buf[:n]); err != nil {
			_ = from.Close()
			return
		}
		w.last.Store(time.Now().UnixNano())
	}
}

// freeze waits until nothing has passed for a second: that the server has done what it was asked for
// can be seen before its answer has come through here.
func (w *wire) freeze() {
	for w.last.Load() > time.Now().Add(-time.Second).UnixNano() {
		time.Sleep(20 * time.Millisecond)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.frozen.Store(true)
	w.frozen = new(atomic.Bool)
}

// The holder's connection swallows everything from one moment on: the first renewal times out, the
// next goes over a new connection, and the Lease is not lost.
func TestKubeHalfDeadConnection(t *testing.T) {
	t.Parallel()
	cp := bed.NewControlPlane(t)
	k := newKubetool(t, cp)
	w := newWire(t, strings.TrimPrefix(cp.URL, "https://"))
	text, err := os.ReadFile(k.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	bed.Write(t, k.kubeconfig, strings.ReplaceAll(string(text), cp.URL, "https://"+w.listener.Addr().String()))
	renewed := func() time.Time {
		lease, err := cp.Client.CoordinationV1().Leases("default").Get(bed.Context(t), "half-dead", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return lease.Spec.RenewTime.Time
	}
	bed.Poll(t, 10*time.Second, "namespace default", func() error {
		_, err := cp.Client.CoreV1().Namespaces().Get(bed.Context(t), "default", metav1.GetOptions{})
		return err
	})
	p := k.start(t, "lease", "default", "half-dead", "a", "600")
	bed.Poll(t, 5*time.Second, "leads", has(p, "acquired"))
	for range 2 {
		w.freeze()
		last := renewed()
		bed.Poll(t, 10*time.Second, "renewed over a new connection", func() error {
			if now := renewed(); !now.After(last.Add(3 * time.Second)) {
				return fmt.Errorf("renewed at %v", now)
			}
			return nil
		})
	}
	if strings.Contains(p.Output(), "lost") {
		t.Errorf("the Lease was lost:\n%s", p.Output())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.made != 3 {
		t.Errorf("%d connections, want the first and one after each freeze", w.made)
	}
}

// Two contenders: one leads, a clean end hands over at once, a killed holder is replaced when its
// Lease has run out and not before.
func TestKubeLease(t *testing.T) {
	t.Parallel()
	cp := bed.NewControlPlane(t)
	k := newKubetool(t, cp)
	lease := func(identity string) *bed.Process {
		return k.start(t, "lease", "kube-system", "weft-test", identity, "600")
	}
	bed.Poll(t, 10*time.Second, "kube-system", func() error {
		_, err := cp.Client.CoreV1().Namespaces().Get(bed.Context(t), "kube-system", metav1.GetOptions{})
		return err
	})
	a := lease("a")
	bed.Poll(t, 5*time.Second, "a leads", has(a, "acquired"))
	b := lease("b")
	bed.Poll(t, 5*time.Second, "b sees a", has(b, "holder a"))
	bed.Hold(t, 3*time.Second, "a goes on leading", func() error {
		if strings.Contains(b.Output(), "acquired") || strings.Contains(a.Output(), "lost") {
			return fmt.Errorf("a: %s\nb: %s", a.Output(), b.Output())
		}
		return nil
	})
	if code, err := a.End(syscall.SIGTERM, 10*time.Second); err != nil || code != 0 {
		t.Errorf("a ended with %d, %v", code, err)
	}
	bed.Poll(t, 4*time.Second, "b leads after a has released", has(b, "acquired"))

	c := lease("c")
	bed.Poll(t, 5*time.Second, "c sees b", has(c, "holder b"))
	time.Sleep(3 * time.Second)
	got, err := cp.Client.CoordinationV1().Leases("kube-system").Get(bed.Context(t), "weft-test", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b.Kill()
	bed.Poll(t, 30*time.Second, "c leads after b has been killed", has(c, "acquired"))
	after, err := cp.Client.CoordinationV1().Leases("kube-system").Get(bed.Context(t), "weft-test", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if waited := after.Spec.AcquireTime.Sub(got.Spec.RenewTime.Time); waited < 15*time.Second {
		t.Errorf("c took the Lease %v after a renewal that counts for 15 s", waited)
	}
	if *after.Spec.LeaseTransitions != *got.Spec.LeaseTransitions+1 {
		t.Errorf("transitions %d after %d", *after.Spec.LeaseTransitions, *got.Spec.LeaseTransitions)
	}
}
