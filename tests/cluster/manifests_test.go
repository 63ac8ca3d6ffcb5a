// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"os"
	"path/filepath"
	"testing"

	"weft.dev/weft/tests/cluster/bed"
)

// The server takes all that manifests/ and its overlays make, with strict validation: an unknown or
// doubled field is an error.
func TestManifests(t *testing.T) {
	t.Parallel()
	dirs, err := filepath.Glob(bed.Repo("manifests/overlays/*"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no overlays: %v", err)
	}
	cp := bed.Shared(t)
	for _, dir := range append(dirs, bed.Repo("manifests")) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			objects := bed.Kustomize(t, dir)
			if asked := cp.Accepts(t, objects); asked != len(objects) {
				t.Errorf("the server knows the kinds of %d objects of %d", asked, len(objects))
			}
		})
	}
}

// The samples, but those of kinds that come with Volcano.
func TestSamples(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(bed.Repo("manifests/samples/*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		objects := bed.Objects(t, text)
		for _, object := range objects {
			if object.GetNamespace() == "" {
				object.SetNamespace("default")
			}
		}
		asked += bed.Shared(t).Accepts(t, objects)
	}
	if asked == 0 {
		t.Errorf("none of the samples in %q was looked at", files)
	}
}
