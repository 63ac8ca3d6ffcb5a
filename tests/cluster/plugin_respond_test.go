// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"weft.dev/weft/tests/cluster/bed"
)

const (
	uuidA  = "GPU-a0000000-0000-0000-0000-000000000000"
	uuidB  = "GPU-b0000000-0000-0000-0000-000000000000"
	uuidM  = "MIG-c0000000-0000-0000-0000-000000000000"
	mig    = "nvidia.com/mig-1g.10gb"
	kind   = "k8s.device-plugin.nvidia.com/gpu="
	folder = "/var/run/nvidia-container-devices"
)

// respondMachine is two GPUs and instance 3 of a third one. Their nodes are devices that every
// Linux has: CDI's library looks at them.
func respondMachine(vendor string) map[string]any {
	return map[string]any{"weft_machine": 1, "vendor": vendor, "driver_version": "550.54.15",
		"common_nodes": []string{"/dev/null"},
		"devices": []map[string]any{
			{"id": uuidB, "index": 1, "nodes": []string{"/dev/full"}, "mounts": []string{"/dev/dri/by-path/pci-0000:1a:00.0-card"}},
			{"id": uuidA, "index": 0, "nodes": []string{"/dev/zero"}},
			{"id": uuidM, "index": 2, "parent": 2, "partition": 3, "profile": "1g.10gb", "nodes": []string{"/dev/random", "/dev/urandom"}},
		}}
}

// respondHost is a host's root with a driver of the machine's version, an IMEX channel and GDRCopy.
func respondHost(t *testing.T, root string) {
	t.Helper()
	for _, path := range []string{"usr/lib64/libcuda.so.550.54.15", "dev/nvidiactl", "dev/gdrdrv",
		"dev/nvidia-caps-imex-channels/channel0", "usr/bin/nvidia-cdi-hook"} {
		bed.Write(t, filepath.Join(root, path), "")
	}
	if err := os.Symlink("libcuda.so.550.54.15", filepath.Join(root, "usr/lib64/libcuda.so.1")); err != nil {
		t.Fatal(err)
	}
}

// rw are device nodes as the runtime is told them.
func rw(paths ...string) []string {
	var all []string
	for _, p := range paths {
		all = append(all, p+":"+p+":rw")
	}
	slices.Sort(all)
	return all
}

// hideKey replaces the hash in the key of weft's CDI annotation, which is of no account.
func hideKey(t *testing.T, g grant) grant {
	t.Helper()
	const prefix = "annotation cdi.k8s.io/weft-device-plugin_"
	for i, other := range g.Other {
		if key, value, ok := strings.Cut(strings.TrimPrefix(other, prefix), "="); ok && strings.HasPrefix(other, prefix) {
			if len(key) != 16 {
				t.Errorf("annotation's hash %q has %d digits, want 16", key, len(key))
			}
			g.Other[i] = "annotation " + value
		}
	}
	return g
}

type mount struct{ Source, Destination string }

// letIn runs CDI's own library over the files, and says what a container gets for the names.
func letIn(t *testing.T, program, folder string, names ...string) (spec struct {
	Process struct{ Env []string }
	Mounts  []mount
	Linux   struct{ Devices []struct{ Path string } }
	Hooks   struct{ CreateContainer []struct{ Args []string } }
}) {
	t.Helper()
	out, err := exec.Command(program, append([]string{folder}, names...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("cdicheck %q: %v: %s", names, err, out)
	}
	if err := json.Unmarshal(out, &spec); err != nil {
		t.Fatalf("cdicheck: %v: %s", err, out)
	}
	return spec
}

// buildCDICheck builds the program, which is a module of its own.
func buildCDICheck(t *testing.T) string {
	t.Helper()
	program := filepath.Join(bed.Dir(t), "cdicheck")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir = bed.Repo("tests", "cluster", "cdicheck")
	if out, err := build.CombinedOutput(); err != nil {
		bed.Skip(t, "cdicheck cannot be built: %v: %s", err, out)
	}
	return program
}

// What reaches the container's runtime for each strategy, vendor and feature, by the real kubelet.
func TestPluginResponds(t *testing.T) {
	t.Parallel()
	cdicheck := buildCDICheck(t)
	k := bed.StartKubelet(t, bed.Shared(t))
	host, files := filepath.Join(k.Dir, "host"), filepath.Join(k.Dir, "cdi")
	respondHost(t, host)
	both := uuidA + "," + uuidB
	volume := func(id string) string { return "mount /dev/null:" + folder + "/" + id }
	gpuNodes := rw("/dev/null", "/dev/zero", "/dev/full")
	// Intel's links are mounted for any vendor's machine that has them.
	const link = "mount /dev/dri/by-path/pci-0000:1a:00.0-card:/dev/dri/by-path/pci-0000:1a:00.0-card"
	for _, c := range []struct {
		name, vendor, resource string
		args                   []string
		want                   grant
	}{
		{"usual", "nvidia", bed.GPU, nil, grant{[]string{"NVIDIA_VISIBLE_DEVICES=" + both}, gpuNodes, []string{link}}},
		{"no-nodes", "nvidia", bed.GPU, []string{"--pass-device-specs=false"},
			grant{Env: []string{"NVIDIA_VISIBLE_DEVICES=" + both}}},
		{"mig-index", "nvidia", mig, []string{"--device-id-strategy", "index"},
			grant{[]string{"NVIDIA_VISIBLE_DEVICES=2:3"}, rw("/dev/null", "/dev/random", "/dev/urandom"), nil}},
		{"volumes", "nvidia", bed.GPU, []string{"--device-list-strategy", "volume-mounts", "--pass-device-specs=false"},
			grant{[]string{"NVIDIA_VISIBLE_DEVICES=" + folder}, nil, []string{volume(uuidA), volume(uuidB)}}},
		{"cri", "nvidia", bed.GPU, []string{"--device-list-strategy", "cdi-cri"},
			grant{Other: []string{"CDI " + kind + uuidA, "CDI " + kind + uuidB}}},
		{"cri-mig", "nvidia", mig, []string{"--device-list-strategy", "cdi-cri", "--device-id-strategy", "index"},
			grant{Other: []string{"CDI " + kind + "2:3"}}},
		{"annotations", "nvidia", bed.GPU, []string{"--device-list-strategy", "cdi-annotations"},
			grant{Other: []string{"annotation " + kind + uuidA + "," + kind + uuidB}}},
		{"all", "nvidia", mig, []string{"--device-list-strategy", "envvar,volume-mounts,cdi-annotations,cdi-cri"},
			grant{[]string{"NVIDIA_VISIBLE_DEVICES=" + folder}, rw("/dev/null", "/dev/random", "/dev/urandom"),
				[]string{"CDI " + kind + uuidM, "annotation " + kind + uuidM, volume(uuidM)}}},
		{"features", "nvidia", mig, []string{"--device-list-strategy", "envvar,cdi-cri", "--gdrcopy-enabled", "--gds-enabled",
			"--imex-channel-ids", "0", "--imex-required"},
			grant{[]string{"NVIDIA_GDRCOPY=enabled", "NVIDIA_GDS=enabled", "NVIDIA_IMEX_CHANNELS=0", "NVIDIA_VISIBLE_DEVICES=" + uuidM},
				rw("/dev/null", "/dev/random", "/dev/urandom", "/dev/gdrdrv", "/dev/nvidia-caps-imex-channels/channel0"),
				[]string{"CDI " + kind + uuidM, "CDI k8s.device-plugin.nvidia.com/gdrcopy=all",
					"CDI k8s.device-plugin.nvidia.com/imex-channel=0"}}},
		{"amd", "amd", bed.GPU, nil, grant{Devices: gpuNodes, Other: []string{link}}},
		{"amd-cri", "amd", bed.GPU, []string{"--device-list-strategy", "cdi-cri"},
			grant{Other: []string{"CDI k8s.device-plugin.amd.com/gpu=" + uuidA, "CDI k8s.device-plugin.amd.com/gpu=" + uuidB}}},
		{"intel", "intel", bed.GPU, nil, grant{Devices: gpuNodes, Other: []string{link}}},
		{"mthreads", "mthreads", bed.GPU, nil,
			grant{[]string{"MTHREADS_VISIBLE_DEVICES=" + both}, gpuNodes, []string{link}}},
	} {
		writeJSON(t, machineFile(k), respondMachine(c.vendor))
		plugin := bed.StartPlugin(t, k, machineFile(k), append([]string{"--host-root", host, "--cdi-dir", files,
			"--partitions", "mixed"}, c.args...)...)
		k.WaitResource(t, 5*time.Second, bed.GPU, bed.Resource{Capacity: 2, Allocatable: 2})
		count := int64(2)
		if c.resource == mig {
			count = 1
			k.WaitResource(t, 5*time.Second, mig, bed.Resource{Capacity: 1, Allocatable: 1})
		}
		plain := k.Run(t, k.Pod("plain-"+c.name, "", 0)).Name
		pod := k.Run(t, k.Pod(c.name, c.resource, count)).Name
		got := hideKey(t, granted(t, k, pod, plain))
		slices.Sort(got.Other)
		slices.Sort(c.want.Other)
		if !got.equal(c.want) {
			t.Errorf("%s\n got %v\nwant %v", c.name, got, c.want)
		}
		for _, m := range k.CRI.Config(t, pod, "main").Mounts {
			if strings.HasPrefix(m.ContainerPath, "/dev/dri/") && !m.Readonly {
				t.Errorf("%s: %s is mounted to be written", c.name, m.ContainerPath)
			}
		}
		k.Delete(t, pod)
		if code, err := plugin.End(syscall.SIGTERM, 5*time.Second); code != 0 || err != nil {
			t.Errorf("%s: the plugin ended with %d, %v", c.name, code, err)
		}
		// what the next one is waited for must not be this one's
		k.WaitResource(t, 5*time.Second, bed.GPU, bed.Resource{Capacity: 2})
		if c.resource == mig {
			k.WaitResource(t, 5*time.Second, mig, bed.Resource{Capacity: 1})
		}
	}

	// The plugins have ended, their files stay, and are what CDI's library takes.
	spec := letIn(t, cdicheck, files, kind+uuidA)
	if paths := spec.Linux.Devices; len(paths) != 2 {
		t.Errorf("%s lets in %v, want /dev/zero and /dev/null", uuidA, paths)
	}
	if !slices.Contains(spec.Process.Env, "NVIDIA_VISIBLE_DEVICES=void") {
		t.Errorf("%s sets %q", uuidA, spec.Process.Env)
	}
	for _, name := range []string{"libcuda.so.1", "libcuda.so.550.54.15"} {
		if !slices.ContainsFunc(spec.Mounts, func(m mount) bool {
			return m.Source == "/usr/lib64/libcuda.so.550.54.15" && m.Destination == "/usr/lib64/"+name
		}) {
			t.Errorf("%s mounts %v, not %s", uuidA, spec.Mounts, name)
		}
	}
	if hooks := spec.Hooks.CreateContainer; len(hooks) != 1 ||
		!slices.Equal(hooks[0].Args, []string{"nvidia-cdi-hook", "update-ldcache", "--folder", "/usr/lib64"}) {
		t.Errorf("%s has the hooks %v", uuidA, hooks)
	}
	if spec := letIn(t, cdicheck, files, kind+uuidM); len(spec.Linux.Devices) != 3 {
		t.Errorf("%s lets in %v", uuidM, spec.Linux.Devices)
	}
	if spec := letIn(t, cdicheck, files, "k8s.device-plugin.amd.com/gpu="+uuidB); len(spec.Linux.Devices) != 2 || len(spec.Hooks.CreateContainer) != 0 {
		t.Errorf("AMD's %s gives %v", uuidB, spec)
	}
}

// CDI files are there before the devices are advertised, come back when a reboot or somebody took
// them, and are the same for another instance; devices whose file cannot be written are not handed
// out; only --uninstall removes them.
func TestPluginCDIFiles(t *testing.T) {
	t.Parallel()
	k := bed.StartKubelet(t, bed.Shared(t))
	host, files := filepath.Join(k.Dir, "host"), filepath.Join(k.Dir, "cdi")
	respondHost(t, host)
	writeJSON(t, machineFile(k), respondMachine("nvidia"))
	start := func() *bed.Process {
		return bed.StartPlugin(t, k, machineFile(k), "--host-root", host, "--cdi-dir", files, "--partitions", "mixed",
			"--device-list-strategy", "cdi-cri")
	}
	file := filepath.Join(files, "k8s.device-plugin.nvidia.com-gpu.json")
	two := bed.Resource{Capacity: 2, Allocatable: 2}
	plugin := start()
	k.WaitResource(t, 5*time.Second, bed.GPU, two)
	pod := k.Run(t, k.Pod("cdi", bed.GPU, 2))
	first, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	// a crash and a reboot that empties the tmpfs
	plugin.Kill()
	if err := os.RemoveAll(files); err != nil {
		t.Fatal(err)
	}
	plugin = start()
	bed.Poll(t, 5*time.Second, "the other instance registers", func() error {
		if n := k.Registrations(t, bed.GPU); n != 2 {
			return fmt.Errorf("%d registrations", n)
		}
		return nil
	})
	if again, err := os.ReadFile(file); err != nil || string(again) != string(first) {
		t.Errorf("after a restart the file differs (%v)", err)
	}
	k.WaitResource(t, 5*time.Second, bed.GPU, two)

	// somebody puts something else in the folder's place
	if err := os.RemoveAll(files); err != nil {
		t.Fatal(err)
	}
	bed.Write(t, files, "")
	plugin.Signal(syscall.SIGHUP)
	k.WaitResource(t, 5*time.Second, bed.GPU, bed.Resource{Capacity: 2, Allocatable: 0})
	if err := os.Remove(files); err != nil {
		t.Fatal(err)
	}
	plugin.Signal(syscall.SIGHUP)
	k.WaitResource(t, 5*time.Second, bed.GPU, two)
	now := k.Get(t, pod.Name)
	if now.Status.ContainerStatuses[0].ContainerID != pod.Status.ContainerStatuses[0].ContainerID {
		t.Error("the running pod was touched")
	}

	if code, err := plugin.End(syscall.SIGTERM, 5*time.Second); code != 0 || err != nil {
		t.Errorf("the plugin ended with %d, %v", code, err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("after the plugin's end: %v", err)
	}
	if out, err := exec.Command(bed.Program(t, "weft-device-plugin"), "--uninstall", "--cdi-dir", files).CombinedOutput(); err != nil || string(out) != "removed 1 CDI file\n" {
		t.Errorf("--uninstall: %v: %s", err, out)
	}
	if left, err := os.ReadDir(files); err != nil || len(left) != 0 {
		t.Errorf("after --uninstall there are %v (%v)", left, err)
	}
}
