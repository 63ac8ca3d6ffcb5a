// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"weft.dev/weft/tests/cluster/bed"
)

// machine is a recorded machine as its file says it (docs/machine.md), read on its own here.
// The file's other fields are kept, so that a changed machine can be written back.
type machine struct {
	raw         map[string]any
	CommonNodes []string `json:"common_nodes"`
	Devices     []struct {
		ID    string   `json:"id"`
		BDF   string   `json:"bdf"`
		Nodes []string `json:"nodes"`
	} `json:"devices"`
	Bandwidth [][]int64 `json:"bandwidth"`
}

// pairs8 is the fixture of eight GPUs with four NVLink bridges.
func pairs8(t *testing.T) machine {
	t.Helper()
	text, err := os.ReadFile(bed.Repo("tests/fixtures/machine/pairs8.json"))
	if err != nil {
		bed.Skip(t, "%v", err)
	}
	var m machine
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &m.raw); err != nil {
		t.Fatal(err)
	}
	if len(m.Devices) != 8 || len(m.pairs()) != 4 {
		t.Fatalf("pairs8.json has %d devices and %d bridges", len(m.Devices), len(m.pairs()))
	}
	return m
}

// pairs are the bridged pairs, that with the smallest PCI address first.
func (m machine) pairs() [][2]int {
	var pairs [][2]int
	for i := range m.Bandwidth {
		for j := i + 1; j < len(m.Bandwidth); j++ {
			if m.Bandwidth[i][j] > 0 && m.Bandwidth[j][i] > 0 {
				pairs = append(pairs, [2]int{i, j})
			}
		}
	}
	slices.SortFunc(pairs, func(a, b [2]int) int {
		if m.Devices[a[0]].BDF < m.Devices[b[0]].BDF {
			return -1
		}
		return 1
	})
	return pairs
}

// write writes the machine with these devices unhealthy, in one step.
func (m machine) write(t *testing.T, path string, unhealthy ...int) {
	t.Helper()
	raw := maps.Clone(m.raw)
	devices := slices.Clone(raw["devices"].([]any))
	for i, d := range devices {
		device := maps.Clone(d.(map[string]any))
		device["healthy"] = !slices.Contains(unhealthy, i)
		devices[i] = device
	}
	raw["devices"] = devices
	writeJSON(t, path, raw)
}

// writeEmpty writes the machine without its devices.
func (m machine) writeEmpty(t *testing.T, path string) {
	t.Helper()
	raw := maps.Clone(m.raw)
	for key, value := range raw {
		if _, list := value.([]any); list && key != "common_nodes" {
			raw[key] = []any{}
		}
	}
	writeJSON(t, path, raw)
}

func writeJSON(t *testing.T, path string, value any) {
	t.Helper()
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	bed.Write(t, path, string(text)+"\n")
}

// grant is what a container was given, in a form that compares.
type grant struct {
	Env     []string // "KEY=value"
	Devices []string // "host:container:permissions"
	Other   []string // mounts, CDI devices, annotations
}

// granted is what the runtime was told beyond what a container without devices gets on the same
// kubelet: what the device plugin is answerable for.
func granted(t *testing.T, k *bed.Kubelet, pod, plainPod string) grant {
	t.Helper()
	with, without := told(t, k, pod), told(t, k, plainPod)
	less := func(a, b []string) []string {
		return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
	}
	return grant{Env: less(with.Env, without.Env), Devices: less(with.Devices, without.Devices), Other: less(with.Other, without.Other)}
}

func told(t *testing.T, k *bed.Kubelet, pod string) grant {
	t.Helper()
	config := k.CRI.Config(t, pod, "main")
	var g grant
	for _, env := range config.Envs {
		g.Env = append(g.Env, env.Key+"="+string(env.Value))
	}
	for _, d := range config.Devices {
		g.Devices = append(g.Devices, d.HostPath+":"+d.ContainerPath+":"+d.Permissions)
	}
	for _, m := range config.Mounts {
		if m.ContainerPath != "/etc/hosts" && m.ContainerPath != "/dev/termination-log" { // files of each pod's own
			g.Other = append(g.Other, "mount "+m.HostPath+":"+m.ContainerPath)
		}
	}
	for _, d := range config.CDIDevices {
		g.Other = append(g.Other, "CDI "+d.Name)
	}
	for key, value := range config.Annotations {
		if key != "io.kubernetes.container.hash" {
			g.Other = append(g.Other, "annotation "+key+"="+value)
		}
	}
	slices.Sort(g.Env)
	slices.Sort(g.Devices)
	slices.Sort(g.Other)
	return g
}

// grantOf is what a container with these devices must be given, by the fixture alone.
func (m machine) grantOf(devices []int) grant {
	var g grant
	ids := ""
	for _, i := range devices {
		if ids != "" {
			ids += ","
		}
		ids += m.Devices[i].ID
		for _, node := range m.Devices[i].Nodes {
			g.Devices = append(g.Devices, node+":"+node+":rw")
		}
	}
	g.Env = []string{"NVIDIA_VISIBLE_DEVICES=" + ids}
	for _, node := range m.CommonNodes {
		g.Devices = append(g.Devices, node+":"+node+":rw")
	}
	slices.Sort(g.Devices)
	return g
}

// machineFile is a machine file of a test's own, which it may rewrite.
func machineFile(k *bed.Kubelet) string { return filepath.Join(k.Dir, "machine.json") }

func (g grant) equal(other grant) bool {
	return slices.Equal(g.Env, other.Env) && slices.Equal(g.Devices, other.Devices) && slices.Equal(g.Other, other.Other)
}

func (g grant) String() string {
	return fmt.Sprintf("env %q devices %q other %q", g.Env, g.Devices, g.Other)
}
