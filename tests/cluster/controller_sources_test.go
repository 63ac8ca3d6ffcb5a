// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weft.dev/weft/tests/cluster/bed"
)

const sourcesNodes = 8

// sourcesKeys are levels that only the test knows; of them the first is a label of the Nodes too.
var sourcesKeys = []string{"example.com/domain", "leaf", "spine", "core"}

// leaves says which nodes are on which leaf: two to a domain, and all domains of a leaf together.
type leaves [sourcesNodes]int

// sourceKind writes the fleet's leaves as what one kind of source reads, and says its settings.
type sourceKind struct {
	name     string
	file     string // that is written last, and cut in half for the fault
	settings string // with %[1]s for the folder
	text     func(l leaves) string
	others   map[string]string // files beside it
	folder   func(t *testing.T, dir string, l leaves)
}

func nodeName(i int) string { return fmt.Sprintf("gpu-%03d", i) }

// members lists the nodes of a leaf.
func (l leaves) members(leaf int) []string {
	var names []string
	for i, at := range l {
		if at == leaf {
			names = append(names, nodeName(i))
		}
	}
	return names
}

func slurmText(l leaves) string {
	return fmt.Sprintf("SwitchName=l0 Nodes=%s\nSwitchName=l1 Nodes=%s\nSwitchName=s0 Switches=l[0-1]\n",
		strings.Join(l.members(0), ","), strings.Join(l.members(1), ","))
}

func planText(l leaves) string {
	return fmt.Sprintf(`apiVersion: weft.dev/v1alpha1
kind: FabricFile
levels: [leaf, spine]
groups:
- name: s0
  level: spine
  groups:
  - {name: l0, level: leaf, nodes: "%s"}
  - {name: l1, level: leaf, nodes: "%s"}
`, strings.Join(l.members(0), ","), strings.Join(l.members(1), ","))
}

// dumpText is ibnetdiscover's record of each switch: leaves 1 and 2 under the spine 9.
func dumpText(l leaves) string {
	var b strings.Builder
	for leaf := range 2 {
		fmt.Fprintf(&b, "switchguid=0xa%d(a%d)\nSwitch 40 \"S-00000000000000a%d\" # \"l%d\"\n", leaf, leaf, leaf, leaf)
		for i, at := range l {
			if at == leaf {
				fmt.Fprintf(&b, "[%d] \"H-%016x\"[1] # \"%s mlx5_0\" lid 1 4xNDR\n", i+1, 0x100+i, nodeName(i))
			}
		}
		fmt.Fprintf(&b, "[40] \"S-00000000000000b0\"[%d] # \"s0\" lid 1 4xNDR\n\n", leaf+1)
	}
	b.WriteString("switchguid=0xb0(b0)\nSwitch 40 \"S-00000000000000b0\" # \"s0\"\n")
	for leaf := range 2 {
		fmt.Fprintf(&b, "[%d] \"S-00000000000000a%d\"[40] # \"l%d\" lid 1 4xNDR\n", leaf+1, leaf, leaf)
	}
	for i, leaf := range l {
		fmt.Fprintf(&b, "\ncaguid=0x%x\nCa 1 \"H-%016x\" # \"%s mlx5_0\"\n[1] \"S-00000000000000a%d\"[%d] # lid 1 \"l%d\" lid 1 4xNDR\n",
			0x100+i, 0x100+i, nodeName(i), leaf, i+1, leaf)
	}
	return b.String()
}

func dotText(l leaves) string {
	var b strings.Builder
	b.WriteString("graph plan {\n\"l0\" [function=\"leaf\"]\n\"l1\" [function=\"leaf\"]\n\"s0\" [function=\"spine\"]\n")
	for leaf := range 2 {
		fmt.Fprintf(&b, "\"l%d\":\"swp40\" -- \"s0\":\"swp%d\"\n", leaf, leaf+1)
	}
	for i, leaf := range l {
		fmt.Fprintf(&b, "\"l%d\":\"swp%d\" -- \"%s\":\"eth0\"\n", leaf, i+1, nodeName(i))
	}
	return b.String() + "}\n"
}

func awsText(l leaves) string {
	var rows []string
	for i, leaf := range l {
		rows = append(rows, fmt.Sprintf(`{"InstanceId": "i-%d", "NetworkNodes": ["nn-core", "nn-spine", "nn-leaf%d"]}`, i, leaf))
	}
	return `{"Instances": [` + strings.Join(rows, ",\n") + `]}`
}

// instances tells which Node an instance is.
func instances() string {
	var b strings.Builder
	b.WriteString("apiVersion: weft.dev/v1alpha1\nkind: FabricFile\nhosts:\n")
	for i := range sourcesNodes {
		fmt.Fprintf(&b, "- {host: i-%d, node: %s}\n", i, nodeName(i))
	}
	return b.String()
}

// ociFolder writes an answer of the metadata service a host.
func ociFolder(t *testing.T, dir string, l leaves) {
	for i, leaf := range l {
		bed.Write(t, filepath.Join(dir, "oci", nodeName(i)+".json"), fmt.Sprintf(
			`{"customerLocalBlock": "block%d", "customerNetworkBlock": "net", "customerHPCIslandId": "island"}`, leaf))
	}
}

// lldpFolder writes a report a switch: what each of its ports sees.
func lldpFolder(t *testing.T, dir string, l leaves) {
	report := func(name string, ports []string) {
		bed.Write(t, filepath.Join(dir, "lldp", name+".json"), `{"lldp": [{"interface": [`+strings.Join(ports, ", ")+`]}]}`)
	}
	port := func(own, chassis, peer, peerPort, role string) string {
		return fmt.Sprintf(`{"name": "%s", "via": "LLDP", "chassis": [{"id": [{"type": "mac", "value": "%s"}], "name": [{"value": "%s"}],`+
			` "capability": [{"type": "%s", "enabled": true}]}], "port": [{"id": [{"type": "ifname", "value": "%s"}]}]}`,
			own, chassis, peer, role, peerPort)
	}
	var spine []string
	for leaf := range 2 {
		spine = append(spine, port(fmt.Sprint("swp", leaf+1), fmt.Sprintf("02:00:00:00:00:a%d", leaf), fmt.Sprint("l", leaf), "swp40", "Bridge"))
	}
	report("s0", spine)
	for i, leaf := range l {
		report(nodeName(i), []string{port("eth0", fmt.Sprintf("02:00:00:00:00:a%d", leaf), fmt.Sprint("l", leaf), fmt.Sprint("swp", i+1), "Bridge")})
	}
}

var sourceKinds = []sourceKind{
	{name: "slurm", file: "topology.conf", settings: "slurm: {conf: %[1]s/topology.conf, interval: 1s}", text: slurmText},
	{name: "infiniband", file: "dump.txt", settings: "infiniband: {dump: %[1]s/dump.txt, interval: 1s}", text: dumpText},
	{name: "infiniband by command", file: "fabric.txt", text: dumpText,
		settings: "infiniband: {command: [cat, %[1]s/fabric.txt], interval: 1s, jitter: 0%%}"},
	{name: "ptm", file: "topology.dot", settings: "ptm: {topology: %[1]s/topology.dot, interval: 1s}", text: dotText},
	{name: "file", file: "plan.yaml", settings: "file: {path: %[1]s/plan.yaml, interval: 1s}", text: planText},
	{name: "awsApiFile", file: "aws.json", text: awsText, others: map[string]string{"instances.yaml": instances()},
		settings: "awsApiFile: {file: %[1]s/aws.json, nodeMap: %[1]s/instances.yaml, interval: 1s}"},
	{name: "lldp", file: "lldp/gpu-000.json", settings: "lldp: {folder: %[1]s/lldp, interval: 1s}", folder: lldpFolder},
	{name: "ociImds", file: "oci/gpu-000.json", settings: "ociImds: {folder: %[1]s/oci, interval: 1s}", folder: ociFolder},
}

func (k sourceKind) write(t *testing.T, dir string, l leaves) {
	t.Helper()
	for name, text := range k.others {
		bed.Write(t, filepath.Join(dir, name), text)
	}
	if k.folder != nil {
		k.folder(t, dir, l)
	} else {
		bed.Write(t, filepath.Join(dir, k.file), k.text(l))
	}
}

func (k sourceKind) config(dir string) string {
	return `apiVersion: weft.dev/v1alpha1
kind: ControllerConfig
nodeSelector: "nvidia.com/gpu.present=true"
tiers: [nvlink, leaf, spine, core]
sources:
- labels: {keys: [{key: example.com/domain, tierName: nvlink}]}
- ` + fmt.Sprintf(k.settings, dir) + `
debounce: {quiet: 200ms, max: 1s}
brakes: {lost: 100%, moved: 100%}
`
}

// expect notes what must be: domains by the nodes' labels, leaves by the other source.
func (f *fleet) expect(l leaves) {
	for i, leaf := range l {
		f.nodes[nodeName(i)] = map[string]string{
			sourcesKeys[0]: fmt.Sprint("d", i/2), "leaf": fmt.Sprint("l", leaf), "spine": "s0", "core": "c0"}
	}
}

// Every kind of file makes the leaves, beside labels that make the NVLink domains. A file that is
// cut in half changes nothing but an event; when it is whole again it counts.
func TestControllerSources(t *testing.T) {
	t.Parallel()
	f := newCluster(t, 0)
	f.keys = sourcesKeys
	for i := range sourcesNodes {
		createNode(t, f.cp, nodeName(i), map[string]string{gpuLabel: "true", sourcesKeys[0]: fmt.Sprint("d", i/2)})
	}
	before := leaves{0, 0, 0, 0, 1, 1, 1, 1}
	after := leaves{0, 0, 1, 1, 1, 1, 1, 1}
	dir := bed.Dir(t)
	var c *bed.Controller
	for _, k := range sourceKinds {
		k.write(t, dir, before)
		f.expect(before)
		if c == nil {
			c = bed.StartController(t, f.cp, k.config(dir))
		} else {
			bed.Write(t, c.Config, k.config(dir)) // it changes its sources while it runs
		}
		t.Log(k.name)
		f.settle(t, 20*time.Second, bed.ControllerUser)

		said := strings.Count(c.Output(), "state=stale")
		whole, err := os.ReadFile(filepath.Join(dir, k.file))
		if err != nil {
			t.Fatal(err)
		}
		bed.Write(t, filepath.Join(dir, k.file), string(whole[:len(whole)/2]))
		bed.Poll(t, 10*time.Second, "the controller says that the source is stale", func() error {
			if strings.Count(c.Output(), "state=stale") == said {
				return fmt.Errorf("%s: nothing said: %s", k.name, c.Tail(5))
			}
			return nil
		})
		if err := f.right(t); err != nil {
			t.Fatalf("%s: half a file: %v", k.name, err)
		}
		k.write(t, dir, after)
		f.expect(after)
		f.wait(t, 20*time.Second)
	}
}
