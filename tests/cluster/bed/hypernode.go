// SPDX-License-Identifier: Apache-2.0

package bed

import (
	"encoding/json"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Member is what a HyperNode lists by exact name.
type Member struct{ Type, Name string }

// HyperNode is what the tests look at in one.
type HyperNode struct {
	Name            string
	Labels          map[string]string
	Annotations     map[string]string
	UID             string
	ResourceVersion string
	Tier            int64
	TierName        string
	Members         []Member
}

type selector struct {
	ExactMatch *struct {
		Name string `json:"name"`
	} `json:"exactMatch,omitempty"`
}

type hyperNodeJSON struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   metav1.ObjectMeta `json:"metadata"`
	Spec       struct {
		Tier     int64  `json:"tier"`
		TierName string `json:"tierName,omitempty"`
		Members  []struct {
			Type     string   `json:"type"`
			Selector selector `json:"selector"`
		} `json:"members"`
	} `json:"spec"`
}

// ParseHyperNode reads one as the API or an audit event has it. A member that is not named
// exactly has an empty name.
func ParseHyperNode(text []byte) (HyperNode, error) {
	var object hyperNodeJSON
	if err := json.Unmarshal(text, &object); err != nil {
		return HyperNode{}, fmt.Errorf("%w in %s", err, text)
	}
	hn := HyperNode{Name: object.Metadata.Name, Labels: object.Metadata.Labels, Annotations: object.Metadata.Annotations,
		UID: string(object.Metadata.UID), ResourceVersion: object.Metadata.ResourceVersion,
		Tier: object.Spec.Tier, TierName: object.Spec.TierName}
	for _, m := range object.Spec.Members {
		member := Member{Type: m.Type}
		if m.Selector.ExactMatch != nil {
			member.Name = m.Selector.ExactMatch.Name
		}
		hn.Members = append(hn.Members, member)
	}
	return hn, nil
}

func (hn HyperNode) object() *unstructured.Unstructured {
	members := []any{}
	for _, m := range hn.Members {
		members = append(members, map[string]any{"type": m.Type,
			"selector": map[string]any{"exactMatch": map[string]any{"name": m.Name}}})
	}
	spec := map[string]any{"tier": hn.Tier, "members": members}
	if hn.TierName != "" {
		spec["tierName"] = hn.TierName
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "spec": spec}}
	object.SetName(hn.Name)
	object.SetLabels(hn.Labels)
	object.SetAnnotations(hn.Annotations)
	return object
}

// HyperNodes are all HyperNodes that exist, by name.
func (cp *ControlPlane) HyperNodes(t testing.TB) map[string]HyperNode {
	t.Helper()
	list, err := cp.Dynamic.Resource(hyperNodes).List(Context(t), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]HyperNode{}
	for _, item := range list.Items {
		text, err := item.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		hn, err := ParseHyperNode(text)
		if err != nil {
			t.Fatal(err)
		}
		all[hn.Name] = hn
	}
	return all
}

// CreateHyperNode makes one as admin.
func (cp *ControlPlane) CreateHyperNode(t testing.TB, hn HyperNode) HyperNode {
	t.Helper()
	made, err := cp.Dynamic.Resource(hyperNodes).Create(Context(t), hn.object(), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	hn.UID, hn.ResourceVersion = string(made.GetUID()), made.GetResourceVersion()
	return hn
}

// DeleteHyperNode deletes one as admin.
func (cp *ControlPlane) DeleteHyperNode(t testing.TB, name string) {
	t.Helper()
	if err := cp.Dynamic.Resource(hyperNodes).Delete(Context(t), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// ReplaceHyperNode puts an object in the place of the one that exists, as admin.
func (cp *ControlPlane) ReplaceHyperNode(t testing.TB, object *unstructured.Unstructured) {
	t.Helper()
	client := cp.Dynamic.Resource(hyperNodes)
	now, err := client.Get(Context(t), object.GetName(), metav1.GetOptions{})
	if err == nil {
		object.SetResourceVersion(now.GetResourceVersion())
		_, err = client.Update(Context(t), object, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
	}
	if err != nil {
		t.Fatal(err)
	}
}
