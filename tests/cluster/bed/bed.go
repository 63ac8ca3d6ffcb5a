// SPDX-License-Identifier: Apache-2.0

// Package bed starts the real parts that weft's cluster tests run against: etcd and
// kube-apiserver, kubelets on a container runtime that only records, weft's own programs as
// processes, and a device plugin that is not weft's. It holds no expectation about weft: those
// are the tests'. hack/cluster-test builds the programs and says in the environment where they are.
package bed

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// run is what all tests of one `go test` share: a folder with a short path (socket paths end at
// 107 bytes; the kubelet's launcher hides /run, /var/lib and /var/log) and what to stop at the end.
var run struct {
	mu     sync.Mutex
	dir    string
	folder int
	kept   bool
	stops  []func()
}

// Main is every test binary's TestMain.
func Main(m *testing.M) {
	if os.Getenv("WEFT_ROOT") == "" {
		fmt.Fprintln(os.Stderr, "SKIP: the cluster tests are run by hack/cluster-test BUILD_DIR")
		if Required() {
			os.Exit(1)
		}
		os.Exit(0)
	}
	dir, err := os.MkdirTemp("/tmp", "weft-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	run.dir = dir
	code := m.Run()
	for i := len(run.stops) - 1; i >= 0; i-- {
		run.stops[i]()
	}
	switch {
	case code != 0 || run.kept || os.Getenv("WEFT_CLUSTER_KEEP") != "":
		fmt.Fprintf(os.Stderr, "cluster tests: logs and state are kept in %s\n", dir)
	default:
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// Required says whether a test that cannot run must fail (WEFT_REQUIRE=cluster).
func Required() bool {
	for _, word := range strings.FieldsFunc(os.Getenv("WEFT_REQUIRE"), func(r rune) bool { return r == ',' || r == ' ' }) {
		if word == "cluster" {
			return true
		}
	}
	return false
}

// Skip ends a test for want of something, as a failure where the cluster tests are required.
func Skip(t testing.TB, format string, args ...any) {
	t.Helper()
	if Required() {
		t.Fatalf("WEFT_REQUIRE=cluster, but: "+format, args...)
	}
	t.Skipf("SKIP: "+format, args...)
}

// Dir is a new folder for one test: removed if the test passes, kept if it fails.
func Dir(t testing.TB) string {
	t.Helper()
	run.mu.Lock()
	run.folder++
	dir := filepath.Join(run.dir, fmt.Sprint(run.folder))
	run.mu.Unlock()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		switch {
		case t.Failed():
			t.Logf("state and logs are kept in %s", dir)
		case os.Getenv("WEFT_CLUSTER_KEEP") == "":
			_ = os.RemoveAll(dir)
		}
	})
	return dir
}

// atEnd runs stop when the whole test run ends, last first.
func atEnd(stop func()) {
	run.mu.Lock()
	defer run.mu.Unlock()
	run.stops = append(run.stops, stop)
}

// Repo is the absolute path of a file of the repository.
func Repo(parts ...string) string {
	return filepath.Join(append([]string{os.Getenv("WEFT_ROOT")}, parts...)...)
}

// Program is the path of one of weft's programs in the build folder under test.
func Program(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(os.Getenv("WEFT_BUILD"), "bin", name)
	if _, err := os.Stat(path); err != nil {
		Skip(t, "%s is not built: %v", name, err)
	}
	return path
}

// Write makes a file whole or not at all: a reader never sees half of it.
func Write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	next := path + ".next"
	if err := os.WriteFile(next, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
}

// Context ends with the test.
func Context(t testing.TB) context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	return ctx
}

// slow is by how much the deadlines are stretched: sanitizers and busy machines only delay what
// must happen, and a poll returns as soon as it has happened.
const slow = 3

// Poll waits until check returns nil, for at most within (times slow), and fails the test with
// what check last said.
func Poll(t testing.TB, within time.Duration, what string, check func() error) {
	t.Helper()
	began := time.Now()
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Since(began) > within*slow {
			t.Fatalf("%s: not within %v: %v", what, within*slow, err)
		}
		time.Sleep(40 * time.Millisecond)
	}
}

// Hold checks for a span of time that check keeps returning nil: for what must not happen.
func Hold(t testing.TB, span time.Duration, what string, check func() error) {
	t.Helper()
	for began := time.Now(); time.Since(began) < span; time.Sleep(40 * time.Millisecond) {
		if err := check(); err != nil {
			t.Fatalf("%s: %v after %v", what, err, time.Since(began).Round(time.Millisecond))
		}
	}
}
