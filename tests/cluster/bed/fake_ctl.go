// SPDX-License-Identifier: Apache-2.0

package bed

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// Ctl runs weftctl as admin of the fake. It returns what it printed, and its exit status.
func (f *Fake) Ctl(t testing.TB, way *Proxy, args ...string) (string, int) {
	t.Helper()
	kubeconfig := filepath.Join(Dir(t), "admin-kubeconfig")
	way.Kubeconfig(t, kubeconfig, adminToken)
	command := exec.CommandContext(Context(t), Program(t, "weftctl"), append(args, "--kubeconfig", kubeconfig)...)
	out, err := command.CombinedOutput()
	if command.ProcessState == nil {
		t.Fatalf("weftctl %q: %v", args, err)
	}
	return string(out), command.ProcessState.ExitCode()
}
