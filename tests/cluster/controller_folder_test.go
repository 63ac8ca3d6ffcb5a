// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"weft.dev/weft/tests/cluster/bed"
)

// run runs weft-controller until it ends, which must be well, and returns what it printed.
func (f *fleet) run(t *testing.T, args ...string) string {
	t.Helper()
	c := bed.StartController(t, f.cp, freeConfig, args...)
	if code, err := c.Wait(60 * time.Second); err != nil || code != 0 {
		t.Fatalf("weft-controller %q: exit status %d, %v:\n%s", args, code, err, c.Tail(20))
	}
	return c.Output()
}

// podList writes a list of running pods, one on each node, of one PodGroup in namespace ml.
func podList(t *testing.T, group string, nodes ...string) string {
	t.Helper()
	list := corev1.PodList{}
	for i, node := range nodes {
		list.Items = append(list.Items, corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: fmt.Sprintf("%s-%d", group, i),
				Annotations: map[string]string{"scheduling.k8s.io/group-name": group}},
			Spec:   corev1.PodSpec{NodeName: node},
			Status: corev1.PodStatus{Phase: corev1.PodRunning},
		})
	}
	text, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(bed.Dir(t), "pods.json")
	bed.Write(t, path, string(text))
	return path
}

// checkAffected looks at what --pods printed: leaf, spine and core of gpu-000 lose it, and with it
// the gang that had its two nodes there.
func checkAffected(t *testing.T, printed string) {
	t.Helper()
	for tier := 1; tier <= 3; tier++ {
		line := regexp.MustCompile(fmt.Sprintf(`(?m)^affected: weft-%s-\S+ \(tier %d\): gang ml/train: 1 of its 2 `+
			`pods there, on 1 of 2 nodes, will be elsewhere: gpu-000 to weft-%[1]s-\S+; no HyperNode of this tier `,
			tierNames[tier-1], tier))
		if len(line.FindAllString(printed, -1)) != 1 {
			t.Errorf("not one line %v in\n%s", line, printed)
		}
	}
	if n := strings.Count(printed, "affected: "); n != 3 {
		t.Errorf("%d lines of what is affected, want 3:\n%s", n, printed)
	}
}

// What --output writes is taken by the server as it stands, in its order; the steps that --against
// writes lead from there to the next state and are sound one by one; and a controller that starts
// on HyperNodes made by hand in this way finds nothing to write.
func TestControllerFolder(t *testing.T) {
	t.Parallel()
	f := newCluster(t, 16)
	f.cp.InstallPolicy(t)
	dir := bed.Dir(t)
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")

	f.run(t, "--output", first)
	text, err := os.ReadFile(filepath.Join(first, "apply.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	mark := f.cp.Audit.Mark(t)
	f.cp.Create(t, bed.Objects(t, text))
	state := map[string]bed.HyperNode{}
	replay(t, state, f.cp.Audit.Since(t, mark, bed.HyperNodeWrites("admin")))
	if err := f.forestRight(t); err != nil {
		t.Fatal(err)
	}

	// A node moves, a leaf empties, and a spine moves to the other core.
	f.relabel(t, "gpu-000", awsPlace(7))
	f.remove(t, "gpu-002")
	f.remove(t, "gpu-003")
	for i := 4; i < 8; i++ {
		f.relabel(t, fmt.Sprintf("gpu-%03d", i), map[string]string{awsKeys[2]: "nn-core0001"})
	}
	pods := podList(t, "train", "gpu-000", "gpu-001")
	checkAffected(t, f.run(t, "--dry-run", "--pods", pods))
	checkAffected(t, f.run(t, "--output", second, "--against", first, "--pods", pods))
	mark = f.cp.Audit.Mark(t)
	user := f.takeSteps(t, second)
	writes := f.cp.Audit.Since(t, mark, bed.HyperNodeWrites(user))
	replay(t, state, writes)
	if len(writes) == 0 {
		t.Error("there were no steps")
	}
	if err := f.forestRight(t); err != nil {
		t.Error(err)
	}

	mark = f.cp.Audit.Mark(t)
	bed.StartController(t, f.cp, freeConfig)
	f.settle(t, 15*time.Second, bed.ControllerUser)
	if events := f.cp.Audit.Since(t, mark, bed.HyperNodeWrites(bed.ControllerUser)); len(events) > 0 {
		t.Errorf("the controller wrote over what was made by hand: %q", names(events))
	}
}

// forestRight looks at the HyperNodes alone.
func (f *fleet) forestRight(t *testing.T) error {
	t.Helper()
	actual, err := forestOf(f.cp.HyperNodes(t), len(f.keys))
	if err != nil {
		return err
	}
	for tier, want := range f.groups() {
		if !maps.Equal(actual.groups[tier], want) {
			return fmt.Errorf("tier %d: %v, want %v", tier+1, actual.groups[tier], want)
		}
	}
	return nil
}

var stepFile = regexp.MustCompile(`^[0-9]+-(release|delete|create|claim)-.*\.yaml$`)

// takeSteps takes the numbered steps of a folder, with kubectl and the folder's own script where
// there is a kubectl, and returns who the server saw.
func (f *fleet) takeSteps(t *testing.T, dir string) string {
	t.Helper()
	if kubectl, err := exec.LookPath("kubectl"); err == nil {
		kubeconfig := f.cp.Kubeconfig(t, filepath.Join(bed.Dir(t), "kubeconfig"), "operator", "system:masters")
		script := exec.Command("sh", filepath.Join(dir, "run.sh"))
		script.Env = append(os.Environ(), "KUBECTL="+kubectl+" --kubeconfig "+kubeconfig)
		if out, err := script.CombinedOutput(); err != nil {
			t.Fatalf("run.sh: %v\n%s", err, out)
		}
		return "operator"
	}
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		kind := stepFile.FindStringSubmatch(entry.Name())
		if kind == nil {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range bed.Objects(t, text) {
			switch kind[1] {
			case "delete":
				f.cp.DeleteHyperNode(t, object.GetName())
			case "create":
				f.cp.Create(t, []*unstructured.Unstructured{object})
			default:
				f.cp.ReplaceHyperNode(t, object)
			}
		}
	}
	return "admin"
}
