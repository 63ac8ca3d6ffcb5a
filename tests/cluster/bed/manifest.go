// SPDX-License-Identifier: Apache-2.0

package bed

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// Objects reads the objects of a YAML or JSON text.
func Objects(t testing.TB, text []byte) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(object.Object) > 0 {
			all = append(all, object)
		}
	}
}

// Kustomize builds a folder as `kubectl kustomize` does.
func Kustomize(t testing.TB, dir string) []*unstructured.Unstructured {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatalf("kustomize %s: %v", dir, err)
	}
	text, err := resources.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return Objects(t, text)
}

// mapper knows the kinds that the server serves now.
func (cp *ControlPlane) mapper(t testing.TB) meta.RESTMapper {
	t.Helper()
	groups, err := restmapper.GetAPIGroupResources(cp.Client.Discovery())
	if err != nil {
		t.Fatal(err)
	}
	return restmapper.NewDiscoveryRESTMapper(groups)
}

func (cp *ControlPlane) resource(mapper meta.RESTMapper, object *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := object.GroupVersionKind()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return cp.Dynamic.Resource(mapping.Resource).Namespace(object.GetNamespace()), nil
	}
	return cp.Dynamic.Resource(mapping.Resource), nil
}

// Create makes the objects in their order; an unknown or doubled field is an error.
func (cp *ControlPlane) Create(t testing.TB, objects []*unstructured.Unstructured) {
	t.Helper()
	mapper := cp.mapper(t)
	for _, object := range objects {
		client, err := cp.resource(mapper, object)
		if err == nil {
			_, err = client.Create(Context(t), object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
		}
		if err != nil {
			t.Fatalf("%s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
}

// Kinds keeps the objects of these kinds.
func Kinds(objects []*unstructured.Unstructured, kinds ...string) []*unstructured.Unstructured {
	var kept []*unstructured.Unstructured
	for _, object := range objects {
		for _, kind := range kinds {
			if object.GetKind() == kind {
				kept = append(kept, object)
			}
		}
	}
	return kept
}

var sinceV114 = regexp.MustCompile(`(?m)^.*# since v1\.14\n`)

// InstallHyperNodes makes the HyperNode CRD, that of before Volcano v1.14 if old, and waits until
// HyperNodes can be listed.
func (cp *ControlPlane) InstallHyperNodes(t testing.TB, old bool) {
	t.Helper()
	text, err := os.ReadFile(Repo("tests/cluster/testdata/hypernode-crd.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if old {
		text = sinceV114.ReplaceAll(text, nil)
	}
	cp.Create(t, Objects(t, text))
	Poll(t, 10*time.Second, "HyperNodes are served", func() error {
		_, err := cp.Dynamic.Resource(hyperNodes).List(Context(t), metav1.ListOptions{})
		return err
	})
}

// InstallPolicy makes the validation policy of testdata and waits until it acts.
func (cp *ControlPlane) InstallPolicy(t testing.TB) {
	t.Helper()
	text, err := os.ReadFile(Repo("tests/cluster/testdata/hypernode-policy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	cp.Create(t, Objects(t, text))
	probe := HyperNode{Name: "probe", Tier: 1, Members: []Member{{Type: "Node", Name: "a.b." + string(bytes.Repeat([]byte("x"), 60))}}}
	Poll(t, 20*time.Second, "the policy acts", func() error {
		_, err := cp.Dynamic.Resource(hyperNodes).Create(Context(t), probe.object(),
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if apierrors.IsInvalid(err) {
			return nil
		}
		return fmt.Errorf("a name of 64 characters is answered with %v", err)
	})
}

var hyperNodes = schema.GroupVersionResource{Group: "topology.volcano.sh", Version: "v1alpha1", Resource: "hypernodes"}

// Accepts checks that the server would make the objects as Create does, and returns how many it
// was asked about: kinds that it does not serve are left out. Namespaces are made, and stay: what
// stands in one needs it.
func (cp *ControlPlane) Accepts(t testing.TB, objects []*unstructured.Unstructured) int {
	t.Helper()
	mapper, asked := cp.mapper(t), 0
	for _, object := range objects {
		client, err := cp.resource(mapper, object)
		if meta.IsNoMatchError(err) {
			continue
		}
		options := metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll}}
		if object.GetKind() == "Namespace" {
			options.DryRun = nil
		} else if object.GetNamespace() != "" {
			cp.needNamespace(t, object.GetNamespace())
		}
		if err == nil {
			_, err = client.Create(Context(t), object, options)
		}
		if err != nil && !(object.GetKind() == "Namespace" && apierrors.IsAlreadyExists(err)) {
			t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), err)
		}
		asked++
	}
	return asked
}

func (cp *ControlPlane) needNamespace(t testing.TB, name string) {
	t.Helper()
	namespace := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := cp.Client.CoreV1().Namespaces().Create(Context(t), namespace, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}
