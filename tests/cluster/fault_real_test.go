// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weft.dev/weft/tests/cluster/bed"
)

// onReal is a world on a real API server; its HyperNodes are followed by a watch.
func onReal(t *testing.T, cp *bed.ControlPlane, random *rand.Rand) *world {
	t.Helper()
	w := newWorld(random)
	client := bed.NewProxy(t, cp).Client()
	w.ask = func(method, path string, body object) (object, error) { return askReal(t, client, method, path, body) }
	list, err := w.ask("GET", hyperNodesPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	version := list["metadata"].(object)["resourceVersion"].(string)
	var mu sync.Mutex
	var all []change
	specs := map[string]string{}
	go func() {
		for t.Context().Err() == nil {
			version = follow(t, client, version, func(event string, o object) {
				hn := hyperNodeOf(o)
				c := change{verb: map[string]string{"ADDED": "create", "MODIFIED": "update", "DELETED": "delete"}[event],
					name: hn.Name, version: hn.ResourceVersion, after: hn}
				mu.Lock()
				defer mu.Unlock()
				if spec := fmt.Sprint(o["spec"]); c.verb != "update" || specs[hn.Name] != spec {
					specs[hn.Name] = spec
					all = append(all, c)
				}
			})
		}
	}()
	w.changes = func() []change {
		mu.Lock()
		defer mu.Unlock()
		for i, c := range all {
			all[i].byHand = w.hand.any(c.name, c.version) || c.verb == "delete" && w.hand.any(c.name, c.after.UID)
		}
		return slices.Clone(all)
	}
	return w
}

func askReal(t *testing.T, client bed.RawClient, method, path string, body object) (object, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	if body == nil {
		text = nil
	}
	r, err := http.NewRequestWithContext(t.Context(), method, client.URL+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+client.Token)
	r.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	answer, err := client.HTTP.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if text, err = io.ReadAll(answer.Body); err != nil {
		return nil, err
	}
	if answer.StatusCode >= 300 {
		status := metav1.Status{Code: int32(answer.StatusCode), Message: string(text)}
		_ = json.Unmarshal(text, &status)
		return nil, &apierrors.StatusError{ErrStatus: status}
	}
	var o object
	err = json.Unmarshal(text, &o)
	return o, err
}

// follow reads one watch to its end and returns the version that it came to.
func follow(t *testing.T, client bed.RawClient, version string, tell func(string, object)) string {
	r, err := http.NewRequestWithContext(t.Context(), "GET", client.URL+hyperNodesPath+"?watch=true&resourceVersion="+version, nil)
	if err != nil {
		return version
	}
	r.Header.Set("Authorization", "Bearer "+client.Token)
	answer, err := client.HTTP.Do(r)
	if err != nil {
		return version
	}
	defer answer.Body.Close()
	for reader := bufio.NewReader(answer.Body); ; {
		line, err := reader.ReadBytes('\n')
		var event struct {
			Type   string
			Object object
		}
		if err != nil || json.Unmarshal(line, &event) != nil || event.Type == "ERROR" {
			return version
		}
		tell(event.Type, event.Object)
		version = event.Object["metadata"].(object)["resourceVersion"].(string)
	}
}
