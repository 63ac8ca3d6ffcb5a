// SPDX-License-Identifier: Apache-2.0

package bed

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Driver is a node's NVIDIA driver as the plugin sees it: the stand-in for the driver's library,
// whose file a test changes while it is in use, and a host root with the nodes that the kernel
// module makes. tests/fakes/nvml/mock.h says what the file may hold and how faults are made.
type Driver struct {
	Root  string // for --host-root
	file  string
	world map[string]any
}

// NewDriver plays the machine of a fixture of tests/fixtures/nvml, whose GPUs have minors 0, 1...
func NewDriver(t testing.TB, k *Kubelet, fixture string) *Driver {
	t.Helper()
	d := &Driver{Root: filepath.Join(k.Dir, "host"), file: filepath.Join(k.Dir, "nvml", "machine.json")}
	text, err := os.ReadFile(Repo("tests/fixtures/nvml", fixture))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &d.world); err != nil {
		t.Fatal(err)
	}
	d.Change(t, func() {})
	for _, node := range []string{"/dev/nvidiactl", "/dev/nvidia-uvm", "/proc/driver/nvidia/version"} {
		Write(t, d.Root+node, "")
	}
	minor := 0
	access := func(path string) {
		minor++
		Write(t, d.Root+path+"/access", fmt.Sprintf("DeviceFileMinor: %d\nDeviceFileMode: 292\n", minor))
		Write(t, fmt.Sprintf("%s/dev/nvidia-caps/nvidia-cap%d", d.Root, minor), "")
	}
	for i := range d.world["gpus"].([]any) {
		Write(t, fmt.Sprintf("%s/dev/nvidia%d", d.Root, i), "")
		instances, _ := d.GPU(i)["mig"].([]any)
		for _, instance := range instances {
			m := instance.(map[string]any)
			gi := fmt.Sprintf("/proc/driver/nvidia/capabilities/gpu%d/mig/gi%v", i, m["gi"])
			access(gi)
			access(fmt.Sprintf("%s/ci%v", gi, m["ci"]))
		}
	}
	return d
}

// GPU is what the file says of a GPU, for use inside Change.
func (d *Driver) GPU(i int) map[string]any { return d.world["gpus"].([]any)[i].(map[string]any) }

// Every is what the file says of each GPU that does not say otherwise.
func (d *Driver) Every() map[string]any { return d.world["every"].(map[string]any) }

// World is the file's content, for use inside Change.
func (d *Driver) World() map[string]any { return d.world }

// Change writes the file after change has been at its content; the plugin sees it at its next call
// into the library.
func (d *Driver) Change(t testing.TB, change func()) {
	t.Helper()
	change()
	text, err := json.Marshal(d.world)
	if err != nil {
		t.Fatal(err)
	}
	Write(t, d.file, string(text))
}

// Tell adds an event, inside Change: {"gpu": 5, "type": 8, "data": 79} is an XID.
func (d *Driver) Tell(event map[string]any) {
	events, _ := d.world["events"].([]any)
	d.world["events"] = append(events, event)
}

// XID is such an event of a whole GPU.
func XID(gpu, code int) map[string]any { return map[string]any{"gpu": gpu, "type": 8, "data": code} }

// Hang makes the next calls of a function take that long; "" ends it for calls that begin later.
func (d *Driver) Hang(function string, ms int) {
	if function == "" {
		delete(d.world, "hang_ms")
		return
	}
	d.world["hang_ms"] = map[string]any{function: ms}
}

// StartDriverPlugin starts weft-device-plugin on a driver beside a kubelet; env is added to its own.
func StartDriverPlugin(t testing.TB, k *Kubelet, d *Driver, env []string, args ...string) *Process {
	t.Helper()
	argv := append([]string{Program(t, "weft-device-plugin"), "--vendor", "nvidia", "--host-root", d.Root,
		"--plugin-dir", k.PluginDir, "--log-format", "json"}, args...)
	fakes := filepath.Join(os.Getenv("WEFT_BUILD"), "fakes")
	return ownProgram(t, Command{Name: "weft-device-plugin", Argv: argv, Log: filepath.Join(k.Dir, "plugin.log"),
		Env: append([]string{"LD_LIBRARY_PATH=" + fakes, "WEFT_MOCK_NVML=" + d.file}, env...)})
}
