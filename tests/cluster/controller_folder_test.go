// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"weft.dev/weft/tests/cluster/bed"
)

// run runs weft-controller until it ends, which must be well.
func (f *fleet) run(t *testing.T, args ...string) {
	t.Helper()
	c := bed.StartController(t, f.cp, freeConfig, args...)
	if code, err := c.Wait(60 * time.Second); err != nil || code != 0 {
		t.Fatalf("weft-controller %q: exit status %d, %v:\n%s", args, code, err, c.Tail(20))
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
	f.run(t, "--output", second, "--against", first)
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
