// SPDX-License-Identifier: Apache-2.0

package bed

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Process is one program that a test started. Its output goes to a file.
type Process struct {
	Name string
	Log  string // file with stdout and stderr
	cmd  *exec.Cmd
	done chan struct{}
	err  error // of Wait; valid once done is closed
}

// Command is what to start.
type Command struct {
	Name string
	Argv []string
	Env  []string // beside the test's own
	Log  string   // file; appended to
	Dir  string
}

// starter runs start calls on one OS thread that lives as long as the test run: the kernel sends
// a child its parent-death signal when the *thread* that made it ends.
var starter = sync.OnceValue(func() chan func() {
	calls := make(chan func())
	go func() {
		runtime.LockOSThread()
		for call := range calls {
			call()
		}
	}()
	return calls
})

// start starts a program that dies with the test run, however that ends.
func start(c Command) (*Process, error) {
	out, err := os.OpenFile(c.Log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	p := &Process{Name: c.Name, Log: c.Log, done: make(chan struct{})}
	p.cmd = exec.Command(c.Argv[0], c.Argv[1:]...)
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.Dir = out, out, c.Dir
	p.cmd.Env = append(os.Environ(), c.Env...)
	// A group of its own: an interrupt from the terminal reaches the tests, which then end it.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	started := make(chan error, 1)
	starter() <- func() { started <- p.cmd.Start() }
	if err := <-started; err != nil {
		return nil, err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// Start starts a program for one test, which ends it.
func Start(t testing.TB, c Command) *Process {
	t.Helper()
	p, err := start(c)
	if err != nil {
		t.Fatalf("%s: %v", c.Name, err)
	}
	t.Cleanup(func() { p.finish(t) })
	return p
}

// finish ends the process with its test.
func (p *Process) finish(t testing.TB) {
	p.Kill()
	if t.Failed() {
		t.Logf("%s (%s), its last lines:\n%s", p.Name, p.Log, p.Tail(25))
	}
}

// Pid is the process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Alive says whether the process still runs.
func (p *Process) Alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Check is an error once the process has ended: for polls.
func (p *Process) Check() error {
	if p.Alive() {
		return nil
	}
	return fmt.Errorf("%s ended: %v; its last lines:\n%s", p.Name, p.err, p.Tail(25))
}

// Signal sends a signal, also to a process that has just ended.
func (p *Process) Signal(sig syscall.Signal) { _ = p.cmd.Process.Signal(sig) }

// Kill ends the process with SIGKILL and waits for its end.
func (p *Process) Kill() {
	p.Signal(syscall.SIGKILL)
	<-p.done
}

// End sends sig, waits for the end (SIGKILL after within) and returns the exit status; a process
// that a signal ended has -1.
func (p *Process) End(sig syscall.Signal, within time.Duration) (int, error) {
	p.Signal(sig)
	select {
	case <-p.done:
	case <-time.After(within):
		p.Kill()
		return -1, fmt.Errorf("%s: still there %v after %v", p.Name, within, sig)
	}
	return p.cmd.ProcessState.ExitCode(), nil
}

// Wait waits for the end and returns the exit status.
func (p *Process) Wait(within time.Duration) (int, error) {
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode(), nil
	case <-time.After(within):
		return -1, fmt.Errorf("%s: still runs after %v", p.Name, within)
	}
}

// Output is all the process has written so far.
func (p *Process) Output() string {
	text, _ := os.ReadFile(p.Log)
	return string(text)
}

// Tail is the end of the output.
func (p *Process) Tail(lines int) string {
	all := strings.Split(strings.TrimRight(p.Output(), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// ownProgram starts one of weft's programs and, when the test ends, asks it to leave.
func ownProgram(t testing.TB, c Command) *Process {
	t.Helper()
	p := Start(t, c)
	t.Cleanup(func() { endOwn(t, p) })
	return p
}

// endOwn asks one of weft's programs to leave: that must be quick and clean (a sanitizer's finding
// is an exit status too). One that the test ended was judged there.
func endOwn(t testing.TB, p *Process) {
	t.Helper()
	if p.Alive() {
		switch code, err := p.End(syscall.SIGTERM, 10*time.Second*slow); {
		case err != nil:
			t.Error(err)
		case code != 0:
			t.Errorf("%s: exit status %d after SIGTERM; its last lines:\n%s", p.Name, code, p.Tail(40))
		}
	}
	p.finish(t)
}

var ports struct {
	sync.Mutex
	given map[int]bool
}

// freePorts finds TCP ports that nobody listens on, below the range from which the kernel takes
// the local ports of outgoing connections.
func freePorts(n int) ([]int, error) {
	ports.Lock()
	defer ports.Unlock()
	if ports.given == nil {
		ports.given = map[int]bool{}
	}
	var found []int
	for try := 0; try < 2000 && len(found) < n; try++ {
		port := 15000 + rand.IntN(17000)
		if ports.given[port] {
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		_ = l.Close()
		ports.given[port] = true
		found = append(found, port)
	}
	if len(found) < n {
		return nil, errors.New("no free TCP ports between 15000 and 32000")
	}
	return found, nil
}

// FreeAddress is a loopback address that nobody listens on.
func FreeAddress(t testing.TB) string {
	t.Helper()
	port, err := freePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", port[0])
}
