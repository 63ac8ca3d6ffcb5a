// SPDX-License-Identifier: Apache-2.0

package bed

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Proxy stands between a client and an API server, real or fake, and does to requests what a test
// asks for. Bearer tokens pass through it, client certificates do not.
type Proxy struct {
	URL    string
	ca     *authority
	page   int  // a list's most objects, whatever was asked for; 0 = as asked
	plain  bool // as a server that knows no lists as the beginning of a watch
	mu     sync.Mutex
	judge  func(*http.Request) Fault
	conns  map[net.Conn]bool
	ends   map[*http.Request]func() // of the watches under way
	broken []BrokenTLS              // of the next handshakes
	server *http.Server
}

// Fault is what happens to one request.
type Fault struct {
	Delay      time.Duration // before anything else
	Status     int           // answered instead of asking the server
	Reason     string        // with Status, of the metav1.Status; "" = a page that is none
	Message    string
	RetryAfter int           // seconds, with Status
	Cut        bool          // the answer ends before it began, and the server is not asked
	Hangup     bool          // so does the connection, with all that is under way on it
	Lose       bool          // the server does it, and the answer is lost
	Half       bool          // the answer breaks off within its body, a watch within an event
	After      func()        // called when the server has done it, before the answer is passed on or lost
	Sent       func()        // called when the answer was passed on
	Life       time.Duration // the answer's body is cut off after this time
	Gone       bool          // a watch: its version is forgotten, says its first event
	Silent     bool          // a watch: nothing comes but its head
	Rewind     bool          // a watch: events come again, as from a server that starts at an older version
	Hit        func()        // called when the fault has happened; may be nil
}

// BrokenTLS is how a handshake fails.
type BrokenTLS int

// The ways in which handshakes fail.
const (
	TLSStranger BrokenTLS = iota // the certificate is of another authority
	TLSAlert                     // the server refuses
	TLSGarbage                   // what answers does not speak TLS
)

// IsWrite says whether the request changes something other than a lease.
func IsWrite(r *http.Request) bool {
	return r.Method != http.MethodGet && !strings.HasPrefix(r.URL.Path, "/apis/coordination.k8s.io/")
}

// IsWatch says whether the request is for a watch.
func IsWatch(r *http.Request) bool {
	return r.Method == http.MethodGet && r.URL.Query().Get("watch") != ""
}

// NewProxy starts a proxy before a real API server that lets everything pass.
func NewProxy(t testing.TB, cp *ControlPlane) *Proxy {
	t.Helper()
	upstream, err := url.Parse(cp.URL)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cp.ca.PEM)
	return newProxy(t, cp.ca, &httputil.ReverseProxy{FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(upstream) },
		Transport:    &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots}},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }})
}

func newProxy(t testing.TB, ca *authority, next http.Handler) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{URL: "https://" + listener.Addr().String(), ca: ca, conns: map[net.Conn]bool{}, ends: map[*http.Request]func(){}}
	mine, stranger := serverCertificate(t, ca), serverCertificate(t, newStranger(t))
	config := &tls.Config{Certificates: []tls.Certificate{mine}, NextProtos: []string{"h2", "http/1.1"}}
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		switch how, broken := p.nextBroken(TLSStranger, TLSAlert); {
		case !broken:
			return nil, nil
		case how == TLSAlert:
			return nil, fmt.Errorf("refused by the test")
		}
		return &tls.Config{Certificates: []tls.Certificate{stranger}, NextProtos: config.NextProtos}, nil
	}
	p.server = &http.Server{Handler: p.handler(next), ErrorLog: log.New(io.Discard, "", 0), Protocols: new(http.Protocols),
		TLSConfig: config, ConnState: p.onConn,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) }}
	p.server.Protocols.SetHTTP1(true)
	p.server.Protocols.SetHTTP2(true)
	go func() { _ = p.server.ServeTLS(&garbler{listener, p}, "", "") }()
	t.Cleanup(func() { _ = p.server.Close() })
	return p
}

func newStranger(t testing.TB) *authority {
	t.Helper()
	ca, err := newAuthority()
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func serverCertificate(t testing.TB, ca *authority) tls.Certificate {
	t.Helper()
	pair, err := ca.server()
	if err != nil {
		t.Fatal(err)
	}
	cert, err := tls.X509KeyPair(pair.cert, pair.key)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// garbler answers some connections with what is no TLS.
type garbler struct {
	net.Listener
	proxy *Proxy
}

func (g *garbler) Accept() (net.Conn, error) {
	for {
		conn, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if _, broken := g.proxy.nextBroken(TLSGarbage); !broken {
			return conn, nil
		}
		_, _ = io.WriteString(conn, "HTTP/1.0 400 Bad Request\r\n\r\nthis is no TLS\n")
		_ = conn.Close()
	}
}

// BreakTLS ends all connections, and makes the next handshakes fail in these ways.
func (p *Proxy) BreakTLS(how ...BrokenTLS) {
	p.mu.Lock()
	p.broken = append(p.broken, how...)
	p.mu.Unlock()
	p.HangUp()
}

// BrokenTLS is how many handshakes are still to fail.
func (p *Proxy) BrokenTLS() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.broken)
}

// MendTLS lets handshakes succeed again.
func (p *Proxy) MendTLS() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = nil
}

func (p *Proxy) nextBroken(any ...BrokenTLS) (BrokenTLS, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.broken) == 0 {
		return 0, false
	}
	for _, how := range any {
		if p.broken[0] == how {
			p.broken = p.broken[1:]
			return how, true
		}
	}
	return 0, false
}

func (p *Proxy) onConn(c net.Conn, state http.ConnState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch state {
	case http.StateNew:
		p.conns[c] = true
	case http.StateClosed, http.StateHijacked:
		delete(p.conns, c)
	}
}

// HangUp ends all connections, in the middle of whatever is on them.
func (p *Proxy) HangUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		cutConn(c)
	}
}

func cutConn(c net.Conn) {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn() // no farewell
	}
	_ = c.Close()
}

// EndWatches ends the watches under way as a server does whose time for them is over.
func (p *Proxy) EndWatches() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, end := range p.ends {
		end()
	}
}

type connKey struct{}

func (p *Proxy) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		judge := p.judge
		p.mu.Unlock()
		var fault Fault
		if judge != nil {
			fault = judge(r)
		}
		time.Sleep(fault.Delay)
		switch {
		case fault.Hangup:
			if c, ok := r.Context().Value(connKey{}).(net.Conn); ok {
				cutConn(c)
			}
			panic(http.ErrAbortHandler)
		case fault.Cut:
			panic(http.ErrAbortHandler)
		case fault.Status != 0:
			fault.refuse(w)
			return
		}
		if p.plain && r.URL.Query().Get("sendInitialEvents") != "" {
			Fault{Status: http.StatusUnprocessableEntity, Reason: "Invalid",
				Message: "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"}.refuse(w)
			return
		}
		if p.page > 0 && r.URL.Query().Get("limit") != "" {
			query := r.URL.Query()
			query.Set("limit", fmt.Sprint(p.page))
			r.URL.RawQuery = query.Encode()
		}
		p.pass(next, w, r, fault)
	})
}

// refuse answers in the server's place.
func (f Fault) refuse(w http.ResponseWriter) {
	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(f.RetryAfter))
	}
	if f.Reason == "" {
		http.Error(w, "made by the test", f.Status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.Status)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":%q,"reason":%q,"code":%d}`,
		f.Message, f.Reason, f.Status)
}

// pass asks the server, and spoils its answer as the fault says.
func (p *Proxy) pass(next http.Handler, w http.ResponseWriter, r *http.Request, fault Fault) {
	ctx, end := context.WithCancel(r.Context())
	defer end()
	if fault.Life != 0 {
		limited, cancel := context.WithTimeout(ctx, fault.Life)
		defer cancel()
		ctx = limited
	}
	watch := IsWatch(r)
	var ended bool // as the server does it, so that the client sees a whole answer
	if watch {
		p.mu.Lock()
		p.ends[r] = func() { ended = true; end() }
		p.mu.Unlock()
		defer func() {
			p.mu.Lock()
			delete(p.ends, r)
			graceful := ended
			p.mu.Unlock()
			if problem := recover(); problem != nil && !graceful {
				panic(problem)
			}
		}()
	}
	spoiled := &spoiler{ResponseWriter: w, fault: fault, watch: watch}
	next.ServeHTTP(spoiled, r.WithContext(ctx))
	spoiled.end(ctx)
	if fault.Sent != nil {
		fault.Sent()
	}
}

// Judge sets what decides about each request from now on; nil lets everything pass. It may be
// called from several requests at once.
func (p *Proxy) Judge(judge func(*http.Request) Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.judge = judge
}

// Page makes every list come in pages of so many objects. To be called before the first request.
func (p *Proxy) Page(objects int) { p.page = objects }

// Streams says whether lists may come as the beginning of a watch (the default), or are refused in
// this form as by older servers. To be called before the first request.
func (p *Proxy) Streams(may bool) { p.plain = !may }

// Kubeconfig writes one that leads to the proxy.
func (p *Proxy) Kubeconfig(t testing.TB, path, token string) {
	t.Helper()
	(&ControlPlane{URL: p.URL, ca: p.ca}).TokenKubeconfig(t, path, token)
}

// StartController is bed.StartController by way of the proxy.
func (p *Proxy) StartController(t testing.TB, cp *ControlPlane, config string, args ...string) *Controller {
	t.Helper()
	dir := Dir(t)
	kubeconfig := filepath.Join(dir, "kubeconfig")
	p.Kubeconfig(t, kubeconfig, cp.ControllerToken(t))
	return StartControllerAs(t, cp, dir, kubeconfig, config, args...)
}

// RawClient is what a test needs to speak HTTP with a server as admin.
type RawClient struct {
	URL, Token string
	HTTP       *http.Client
}

// Client is an admin's by way of the proxy.
func (p *Proxy) Client() RawClient {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(p.ca.PEM)
	return RawClient{URL: p.URL, Token: adminToken,
		HTTP: &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots}}}}
}
