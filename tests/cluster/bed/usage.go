// SPDX-License-Identifier: Apache-2.0

package bed

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Usage is what a process has used so far.
type Usage struct {
	CPU          time.Duration // user and system, in steps of 10 ms
	RSS, PeakRSS int64         // bytes
}

// Usage reads it from /proc.
func (p *Process) Usage(t testing.TB) Usage {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/", p.Pid())
	stat, err := os.ReadFile(dir + "stat")
	if err != nil {
		t.Fatal(err)
	}
	// proc(5): utime and stime are fields 14 and 15; field 2, in brackets, may hold blanks
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	var ticks int64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	status, err := os.ReadFile(dir + "status")
	if err != nil {
		t.Fatal(err)
	}
	return Usage{CPU: time.Duration(ticks) * 10 * time.Millisecond, RSS: kilobytes(string(status), "VmRSS:"),
		PeakRSS: kilobytes(string(status), "VmHWM:")}
}

func kilobytes(status, key string) int64 {
	_, rest, _ := strings.Cut(status, key)
	var n int64
	_, _ = fmt.Sscan(rest, &n)
	return n << 10
}

// Server is the kube-apiserver's process.
func (cp *ControlPlane) Server() *Process { return cp.server }

// Bulk is a client as admin for many objects: protobuf, and no limit of its own.
func (cp *ControlPlane) Bulk(t testing.TB) *kubernetes.Clientset {
	t.Helper()
	config := rest.CopyConfig(cp.admin)
	config.ContentType, config.AcceptContentTypes = "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}
