// SPDX-License-Identifier: Apache-2.0

package bed

import (
	"path/filepath"
	"testing"
)

// GPU is the resource that the plugin tests advertise.
const GPU = "nvidia.com/gpu"

// StartPlugin starts weft-device-plugin on a recorded machine beside a kubelet. It returns at
// once: that the kubelet has taken its devices shows in the node's status.
func StartPlugin(t testing.TB, k *Kubelet, machine string, args ...string) *Process {
	t.Helper()
	argv := append([]string{Program(t, "weft-device-plugin"), "--resource", GPU, "--machine", machine,
		"--plugin-dir", k.PluginDir, "--log-format", "json"}, args...)
	return ownProgram(t, Command{Name: "weft-device-plugin", Argv: argv, Log: filepath.Join(k.Dir, "plugin.log")})
}
