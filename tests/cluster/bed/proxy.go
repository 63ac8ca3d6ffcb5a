// SPDX-License-Identifier: Apache-2.0

package bed

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
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

// Proxy stands between a client and the API server and does to requests what a test asks for.
// Bearer tokens pass through it, client certificates do not.
type Proxy struct {
	url    string
	cp     *ControlPlane
	mu     sync.Mutex
	judge  func(*http.Request) Fault
	server *http.Server
}

// Fault is what happens to one request.
type Fault struct {
	Delay  time.Duration // before anything else
	Status int           // answered instead of asking the server
	Cut    bool          // the connection ends without the server being asked
	Lose   bool          // the server does it, and the connection ends without the answer
	After  func()        // called when the server has done it, before the answer is passed on or lost
	Life   time.Duration // the answer's body is cut off after this time
}

// IsWrite says whether the request changes something other than a lease.
func IsWrite(r *http.Request) bool {
	return r.Method != http.MethodGet && !strings.HasPrefix(r.URL.Path, "/apis/coordination.k8s.io/")
}

// NewProxy starts a proxy that lets everything pass.
func NewProxy(t testing.TB, cp *ControlPlane) *Proxy {
	t.Helper()
	pair, err := cp.ca.server()
	if err != nil {
		t.Fatal(err)
	}
	cert, err := tls.X509KeyPair(pair.cert, pair.key)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	upstream, err := url.Parse(cp.URL)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cp.ca.PEM)
	quiet := log.New(io.Discard, "", 0)
	reverse := &httputil.ReverseProxy{FlushInterval: -1, ErrorLog: quiet,
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(upstream) },
		Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots}},
		ModifyResponse: func(r *http.Response) error {
			if fault, ok := r.Request.Context().Value(faultKey{}).(Fault); ok {
				return fault.answered()
			}
			return nil
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }}
	p := &Proxy{url: "https://" + listener.Addr().String(), cp: cp}
	p.server = &http.Server{Handler: p.handler(reverse), ErrorLog: quiet, Protocols: new(http.Protocols),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2", "http/1.1"}}}
	p.server.Protocols.SetHTTP1(true)
	p.server.Protocols.SetHTTP2(true)
	go func() { _ = p.server.ServeTLS(listener, "", "") }()
	t.Cleanup(func() { _ = p.server.Close() })
	return p
}

type faultKey struct{}

func (f Fault) answered() error {
	if f.After != nil {
		f.After()
	}
	if f.Lose {
		return errors.New("the answer is lost")
	}
	return nil
}

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
		case fault.Cut:
			panic(http.ErrAbortHandler)
		case fault.Status != 0:
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(fault.Status)
			fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"made by the test","code":%d}`, fault.Status)
			return
		}
		ctx := context.WithValue(r.Context(), faultKey{}, fault)
		if fault.Life != 0 {
			limited, cancel := context.WithTimeout(ctx, fault.Life)
			defer cancel()
			ctx = limited
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// Judge sets what decides about each request from now on; nil lets everything pass. It may be
// called from several requests at once.
func (p *Proxy) Judge(judge func(*http.Request) Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.judge = judge
}

// StartController is bed.StartController by way of the proxy.
func (p *Proxy) StartController(t testing.TB, config string, args ...string) *Controller {
	t.Helper()
	dir := Dir(t)
	kubeconfig := filepath.Join(dir, "kubeconfig")
	through := *p.cp
	through.URL = p.url
	through.TokenKubeconfig(t, kubeconfig, p.cp.ControllerToken(t))
	return StartControllerAs(t, p.cp, dir, kubeconfig, config, args...)
}
