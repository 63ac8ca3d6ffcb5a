// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"weft.dev/weft/tests/cluster/bed"
)

// ask is one request of the conformance table. In path and body, {uid NAME} and {version NAME} are
// those of the answer that was saved under that name.
type ask struct {
	what         string
	method, path string
	header       string // "Accept: …" or "Content-Type: …"
	body         string
	status       int
	reason       string // of a failure's Status; "-" = any
	save         string // the answer's uid and resourceVersion, by this name
	has          string // what the answer's text has, or after a "-" has not
}

const (
	hyperNodesPath = "/apis/topology.volcano.sh/v1alpha1/hypernodes"
	leasesPath     = "/apis/coordination.k8s.io/v1/namespaces/" + bed.Namespace + "/leases"
	mapsPath       = "/api/v1/namespaces/" + bed.Namespace + "/configmaps"
	eventsPath     = "/apis/events.k8s.io/v1/namespaces/" + bed.Namespace + "/events"
	applyType      = "Content-Type: application/apply-patch+yaml"
	mergeType      = "Content-Type: application/merge-patch+json"
	metadataList   = "Accept: application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

func hyperNodeBody(metadata, spec string) string {
	return `{"apiVersion":"topology.volcano.sh/v1alpha1","kind":"HyperNode","metadata":{` + metadata + `},"spec":{` + spec + `}}`
}

func leaseBody(metadata, holder string) string {
	return `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{` + metadata + `},"spec":{"holderIdentity":"` + holder + `","leaseDurationSeconds":15}}`
}

func nodeBody(metadata, labels string) string {
	return `{"apiVersion":"v1","kind":"Node","metadata":{` + metadata + `,"labels":{` + labels + `}}}`
}

const oneNode = `"tier":1,"members":[{"type":"Node","selector":{"exactMatch":{"name":"n1"}}}]`

// What weft relies on in an API server. The expected answers are the API's conventions; both the
// real server and the fake must give them.
var conformance = []ask{
	// HyperNodes: POST, PUT with resourceVersion, DELETE with preconditions
	{what: "create", method: "POST", path: hyperNodesPath, body: hyperNodeBody(`"name":"cf-a"`, oneNode), status: 201, save: "a"},
	{what: "create again", method: "POST", path: hyperNodesPath, body: hyperNodeBody(`"name":"cf-a"`, oneNode), status: 409, reason: "AlreadyExists"},
	{what: "no such thing", method: "GET", path: hyperNodesPath + "/cf-none", status: 404, reason: "NotFound"},
	{what: "read", method: "GET", path: hyperNodesPath + "/cf-a", status: 200, has: `{uid a}`},
	{what: "bad name", method: "POST", path: hyperNodesPath, body: hyperNodeBody(`"name":"No Name"`, oneNode), status: 422, reason: "Invalid"},
	{what: "bad tier", method: "POST", path: hyperNodesPath, body: hyperNodeBody(`"name":"cf-b"`, `"tier":-1,"members":[]`), status: 422, reason: "Invalid"},
	{what: "unknown field", method: "POST", path: hyperNodesPath + "?fieldValidation=Strict", body: hyperNodeBody(`"name":"cf-b"`, `"tear":1,`+oneNode), status: 400, reason: "BadRequest"},
	{what: "a version at creation", method: "POST", path: hyperNodesPath, body: hyperNodeBody(`"name":"cf-b","resourceVersion":"5"`, oneNode), status: 500},
	{what: "only as if", method: "POST", path: hyperNodesPath + "?dryRun=All", body: hyperNodeBody(`"name":"cf-b"`, oneNode), status: 201},
	{what: "it was only as if", method: "GET", path: hyperNodesPath + "/cf-b", status: 404, reason: "NotFound"},
	{what: "replace without version", method: "PUT", path: hyperNodesPath + "/cf-a", body: hyperNodeBody(`"name":"cf-a"`, oneNode), status: 422, reason: "Invalid"},
	{what: "replace what is not there", method: "PUT", path: hyperNodesPath + "/cf-b", body: hyperNodeBody(`"name":"cf-b","resourceVersion":"5"`, oneNode), status: 404, reason: "NotFound"},
	{what: "replace another", method: "PUT", path: hyperNodesPath + "/cf-a", body: hyperNodeBody(`"name":"cf-b","resourceVersion":"{version a}"`, oneNode), status: 400, reason: "BadRequest"},
	{what: "replace", method: "PUT", path: hyperNodesPath + "/cf-a", body: hyperNodeBody(`"name":"cf-a","resourceVersion":"{version a}"`, strings.Replace(oneNode, "n1", "n2", 1)), status: 200, save: "a2", has: `"generation":2`},
	{what: "replace by the same", method: "PUT", path: hyperNodesPath + "/cf-a", body: hyperNodeBody(`"name":"cf-a","resourceVersion":"{version a2}"`, strings.Replace(oneNode, "n1", "n2", 1)), status: 200, has: `"resourceVersion":"{version a2}"`},
	{what: "replace an old version", method: "PUT", path: hyperNodesPath + "/cf-a", body: hyperNodeBody(`"name":"cf-a","resourceVersion":"{version a}"`, oneNode), status: 409, reason: "Conflict"},
	{what: "replace another uid", method: "PUT", path: hyperNodesPath + "/cf-a", body: hyperNodeBody(`"name":"cf-a","uid":"11111111-0000-4000-8000-000000000000","resourceVersion":"{version a2}"`, oneNode), status: 409, reason: "Conflict"},
	{what: "write the status", method: "PATCH", header: mergeType, path: hyperNodesPath + "/cf-a/status", body: `{"status":{"nodeCount":1}}`, status: 200, save: "a3", has: `"nodeCount":1`},
	{what: "a status in the spec's place", method: "PUT", path: hyperNodesPath + "/cf-a", body: strings.TrimSuffix(hyperNodeBody(`"name":"cf-a","resourceVersion":"{version a3}"`, oneNode), "}") + `,"status":{"nodeCount":7}}`, status: 200, save: "a4", has: `"nodeCount":1`},
	{what: "a custom resource in protobuf", method: "GET", path: hyperNodesPath, header: "Accept: application/vnd.kubernetes.protobuf", status: 406, reason: "-"},
	{what: "delete another uid", method: "DELETE", path: hyperNodesPath + "/cf-a", body: deleteOptions(`"uid":"11111111-0000-4000-8000-000000000000"`), status: 409, reason: "Conflict"},
	{what: "delete an old version", method: "DELETE", path: hyperNodesPath + "/cf-a", body: deleteOptions(`"uid":"{uid a}","resourceVersion":"{version a}"`), status: 409, reason: "Conflict"},
	{what: "delete", method: "DELETE", path: hyperNodesPath + "/cf-a", body: deleteOptions(`"uid":"{uid a}","resourceVersion":"{version a4}"`), status: 200, has: `"status":"Success"`},
	{what: "delete again", method: "DELETE", path: hyperNodesPath + "/cf-a", body: deleteOptions(`"uid":"{uid a}"`), status: 404, reason: "NotFound"},
	{what: "with a finalizer", method: "POST", path: hyperNodesPath, body: hyperNodeBody(`"name":"cf-f","finalizers":["example.test/wait"]`, oneNode), status: 201, save: "f"},
	{what: "delete it", method: "DELETE", path: hyperNodesPath + "/cf-f", status: 200, has: "deletionTimestamp"},
	{what: "take the finalizer away", method: "PATCH", header: mergeType, path: hyperNodesPath + "/cf-f", body: `{"metadata":{"finalizers":null}}`, status: 200},
	{what: "it is gone", method: "GET", path: hyperNodesPath + "/cf-f", status: 404, reason: "NotFound"},
	{what: "nothing that is served", method: "GET", path: "/apis/topology.volcano.sh/v1alpha1/hypernodez", status: 404, reason: "-"},

	// Nodes: labels by server-side apply
	{what: "node", method: "POST", path: "/api/v1/nodes?fieldManager=admin", body: nodeBody(`"name":"cf-n"`, `"mine":"1"`), status: 201, save: "n"},
	{what: "apply labels", method: "PATCH", header: applyType, path: "/api/v1/nodes/cf-n?fieldManager=weft&force=true", body: nodeBody(`"name":"cf-n"`, `"weft.dev/tier-1":"a","weft.dev/tier-2":"b"`), status: 200, save: "n2", has: `"mine":"1"`},
	{what: "apply them again", method: "PATCH", header: applyType, path: "/api/v1/nodes/cf-n?fieldManager=weft&force=true", body: nodeBody(`"name":"cf-n"`, `"weft.dev/tier-1":"a","weft.dev/tier-2":"b"`), status: 200, has: `"resourceVersion":"{version n2}"`},
	{what: "apply fewer", method: "PATCH", header: applyType, path: "/api/v1/nodes/cf-n?fieldManager=weft&force=true", body: nodeBody(`"name":"cf-n"`, `"weft.dev/tier-1":"a"`), status: 200, has: `-"weft.dev/tier-2":"b"`},
	{what: "apply another's label", method: "PATCH", header: applyType, path: "/api/v1/nodes/cf-n?fieldManager=weft", body: nodeBody(`"name":"cf-n"`, `"mine":"2"`), status: 409, reason: "Conflict"},
	{what: "apply it by force", method: "PATCH", header: applyType, path: "/api/v1/nodes/cf-n?fieldManager=weft&force=true", body: nodeBody(`"name":"cf-n"`, `"mine":"2"`), status: 200, save: "n3", has: `"mine":"2"`},
	{what: "apply to an old version", method: "PATCH", header: applyType, path: "/api/v1/nodes/cf-n?fieldManager=weft&force=true", body: nodeBody(`"name":"cf-n","uid":"{uid n}","resourceVersion":"{version n}"`, `"mine":"3"`), status: 409, reason: "Conflict"},
	{what: "apply to this version", method: "PATCH", header: applyType, path: "/api/v1/nodes/cf-n?fieldManager=weft&force=true", body: nodeBody(`"name":"cf-n","uid":"{uid n}","resourceVersion":"{version n3}"`, `"mine":"3"`), status: 200, save: "n4", has: `"mine":"3"`},
	{what: "apply the same to an old version", method: "PATCH", header: applyType, path: "/api/v1/nodes/cf-n?fieldManager=weft&force=true", body: nodeBody(`"name":"cf-n","uid":"{uid n}","resourceVersion":"{version n3}"`, `"mine":"3"`), status: 409, reason: "Conflict"},
	{what: "apply a version to what is gone", method: "PATCH", header: applyType, path: "/api/v1/nodes/cf-gone?fieldManager=weft&force=true", body: nodeBody(`"name":"cf-gone","uid":"11111111-0000-4000-8000-000000000000","resourceVersion":"{version n}"`, `"x":"y"`), status: 409, reason: "Conflict"},
	{what: "apply without a manager", method: "PATCH", header: applyType, path: "/api/v1/nodes/cf-n?force=true", body: nodeBody(`"name":"cf-n"`, `"mine":"2"`), status: 422, reason: "Invalid"},
	{what: "apply to another uid", method: "PATCH", header: applyType, path: "/api/v1/nodes/cf-n?fieldManager=weft&force=true", body: nodeBody(`"name":"cf-n","uid":"11111111-0000-4000-8000-000000000000"`, `"x":"y"`), status: 422, reason: "Invalid"},
	{what: "apply to what is gone", method: "PATCH", header: applyType, path: "/api/v1/nodes/cf-gone?fieldManager=weft&force=true", body: nodeBody(`"name":"cf-gone","uid":"11111111-0000-4000-8000-000000000000"`, `"x":"y"`), status: 409, reason: "Conflict"},
	{what: "merge", method: "PATCH", header: mergeType, path: "/api/v1/nodes/cf-n?fieldManager=weft", body: `{"metadata":{"labels":{"mine":null,"x":"y"}}}`, status: 200, has: `-"mine"`},
	{what: "merge with an old version", method: "PATCH", header: mergeType, path: "/api/v1/nodes/cf-n", body: `{"metadata":{"resourceVersion":"{version n}","labels":{"x":"z"}}}`, status: 409, reason: "Conflict"},
	{what: "an unknown patch", method: "PATCH", header: "Content-Type: text/plain", path: "/api/v1/nodes/cf-n", body: `{}`, status: 415, reason: "UnsupportedMediaType"},
	{what: "nodes by label", method: "GET", path: "/api/v1/nodes?labelSelector=x%3Dy", status: 200, has: `"cf-n"`},
	{what: "nodes by another label", method: "GET", path: "/api/v1/nodes?labelSelector=x%3Dno", status: 200, has: `-"cf-n"`},
	{what: "a bad selector", method: "GET", path: "/api/v1/nodes?labelSelector=x%3D%3D%3Dy", status: 400, reason: "BadRequest"},
	{what: "metadata", method: "GET", path: "/api/v1/nodes/cf-n", header: "Accept: application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", status: 200, has: `"kind":"PartialObjectMetadata"`},
	{what: "delete the node", method: "DELETE", path: "/api/v1/nodes/cf-n", status: 200},

	// Leases
	{what: "lease", method: "POST", path: leasesPath, body: leaseBody(`"name":"cf-l"`, "one"), status: 201, save: "l"},
	{what: "renew", method: "PUT", path: leasesPath + "/cf-l", body: leaseBody(`"name":"cf-l","resourceVersion":"{version l}"`, "two"), status: 200, save: "l2"},
	{what: "renew an old version", method: "PUT", path: leasesPath + "/cf-l", body: leaseBody(`"name":"cf-l","resourceVersion":"{version l}"`, "three"), status: 409, reason: "Conflict"},
	{what: "renew without a version", method: "PUT", path: leasesPath + "/cf-l", body: leaseBody(`"name":"cf-l"`, "three"), status: 422, reason: "Invalid"},
	{what: "renew what is gone", method: "PUT", path: leasesPath + "/cf-m", body: leaseBody(`"name":"cf-m","resourceVersion":"{version l}"`, "one"), status: 201},
	{what: "in no namespace", method: "POST", path: strings.Replace(leasesPath, bed.Namespace, "cf-none", 1), body: leaseBody(`"name":"cf-l"`, "one"), status: 404, reason: "NotFound"},
	{what: "delete the lease", method: "DELETE", path: leasesPath + "/cf-l", status: 200},
	{what: "delete the other lease", method: "DELETE", path: leasesPath + "/cf-m", status: 200},

	// ConfigMaps
	{what: "map", method: "POST", path: mapsPath, body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"cf-c"},"data":{"a":"1"}}`, status: 201, save: "c"},
	{what: "replace the map", method: "PUT", path: mapsPath + "/cf-c", body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"cf-c"},"data":{"a":"2"}}`, status: 200, save: "c2"},
	{what: "replace it by the same", method: "PUT", path: mapsPath + "/cf-c", body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"cf-c"},"data":{"a":"2"}}`, status: 200, has: `"resourceVersion":"{version c2}"`},
	{what: "replace an old map", method: "PUT", path: mapsPath + "/cf-c", body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"cf-c","resourceVersion":"{version c}"},"data":{"a":"3"}}`, status: 409, reason: "Conflict"},
	{what: "replace no map", method: "PUT", path: mapsPath + "/cf-d", body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"cf-d"},"data":{"a":"3"}}`, status: 404, reason: "NotFound"},
	{what: "apply a map that is not there", method: "PATCH", header: applyType, path: mapsPath + "/cf-d?fieldManager=weft&force=true", body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"cf-d"},"data":{"a":"3"}}`, status: 201},
	{what: "delete the maps", method: "DELETE", path: mapsPath + "/cf-c", status: 200},
	{what: "delete the other map", method: "DELETE", path: mapsPath + "/cf-d", status: 200},
	{what: "delete no map", method: "DELETE", path: mapsPath + "/cf-d", status: 404, reason: "NotFound"},

	// events
	{what: "event", method: "POST", path: eventsPath, body: `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"cf-e"},"eventTime":"2026-01-01T00:00:00.000000Z",
		"reportingController":"weft.dev/test","reportingInstance":"test","action":"Test","reason":"Test","type":"Normal","note":"x",
		"regarding":{"apiVersion":"v1","kind":"ConfigMap","namespace":"` + bed.Namespace + `","name":"cf-c"}}`, status: 201},
	{what: "the same event", method: "POST", path: eventsPath, body: `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"cf-e"},"eventTime":"2026-01-01T00:00:00.000000Z",
		"reportingController":"weft.dev/test","reportingInstance":"test","action":"Test","reason":"Test","type":"Normal","note":"x",
		"regarding":{"apiVersion":"v1","kind":"ConfigMap","namespace":"` + bed.Namespace + `","name":"cf-c"}}`, status: 409, reason: "AlreadyExists"},
}

func deleteOptions(preconditions string) string {
	return `{"apiVersion":"v1","kind":"DeleteOptions","preconditions":{` + preconditions + `}}`
}

// The fake answers like the real server: both are asked the same table, and watched alike.
func TestFaultServers(t *testing.T) {
	t.Parallel()
	t.Run("fake", func(t *testing.T) {
		t.Parallel()
		fake := bed.NewFake(t)
		way := fake.NewWay(t)
		conform(t, way.Client())
		// The real one forgets nothing for its first five minutes.
		client := &asker{way.Client()}
		for _, form := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
			fake.Compact()
			event, _, reason := client.watch(t, "/api/v1/nodes?watch=true&resourceVersion=101", form+";as=PartialObjectMetadata;g=meta.k8s.io;v=v1")()
			if event != "ERROR" || reason != "Expired" {
				t.Errorf("%s: a watch from a forgotten version: %s %s", form, event, reason)
			}
		}
	})
	t.Run("real", func(t *testing.T) {
		t.Parallel()
		cp := bed.NewControlPlane(t)
		cp.InstallController(t)
		cp.InstallHyperNodes(t, false)
		conform(t, bed.NewProxy(t, cp).Client())
	})
	t.Run("fake without protobuf", func(t *testing.T) {
		t.Parallel()
		fake := bed.NewFake(t)
		fake.Protobuf = false
		client := &asker{fake.NewWay(t).Client()}
		status, body := client.do(t, ask{method: "GET", path: "/api/v1/nodes", header: metadataList})
		if status != http.StatusNotAcceptable {
			t.Errorf("protobuf alone: %d %s", status, body)
		}
		status, body = client.do(t, ask{method: "GET", path: "/api/v1/nodes", header: metadataList + ",application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"})
		if status != http.StatusOK || !strings.Contains(body, `"kind":"PartialObjectMetadataList"`) {
			t.Errorf("with JSON as a second choice: %d %s", status, body)
		}
	})
}

// conform asks a server the whole table.
func conform(t *testing.T, raw bed.RawClient) {
	t.Helper()
	client := &asker{RawClient: raw}
	saved := []string{}
	for _, a := range conformance {
		replacer := strings.NewReplacer(saved...)
		a.path, a.body, a.has = replacer.Replace(a.path), replacer.Replace(a.body), replacer.Replace(a.has)
		status, body := client.do(t, a)
		var object struct {
			Kind, Status, Reason string
			Metadata             struct{ UID, ResourceVersion string }
		}
		_ = json.Unmarshal([]byte(body), &object)
		bad := status != a.status || (status >= 300 && a.reason != "-" && a.reason != object.Reason)
		if text, not := strings.CutPrefix(a.has, "-"); not {
			bad = bad || strings.Contains(withoutManaged(body), text)
		} else {
			bad = bad || !strings.Contains(withoutManaged(body), text)
		}
		if bad {
			t.Errorf("%s: %s %s: %d %s, want %d %s %s\n%s", a.what, a.method, a.path, status, object.Reason, a.status, a.reason, a.has, body)
		}
		if a.save != "" {
			saved = append(saved, "{uid "+a.save+"}", object.Metadata.UID, "{version "+a.save+"}", object.Metadata.ResourceVersion)
		}
	}
	for _, form := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		conformWatch(t, client, form+";as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
	}
	conformPages(t, client)
}

func withoutManaged(body string) string {
	var object map[string]any
	if json.Unmarshal([]byte(body), &object) != nil {
		return body
	}
	if meta, ok := object["metadata"].(map[string]any); ok {
		delete(meta, "managedFields")
	}
	text, _ := json.Marshal(object)
	return string(text)
}

// conformWatch follows one node's life through a watch.
func conformWatch(t *testing.T, client *asker, accept string) {
	t.Helper()
	must := func(a ask) string {
		t.Helper()
		status, body := client.do(t, a)
		if status/100 != 2 {
			t.Fatalf("%s %s: %d %s", a.method, a.path, status, body)
		}
		return body
	}
	var list struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := json.Unmarshal([]byte(must(ask{method: "GET", path: "/api/v1/nodes?limit=1"})), &list); err != nil {
		t.Fatal(err)
	}
	watch := client.watch(t, "/api/v1/nodes?watch=true&allowWatchBookmarks=true&resourceVersion="+list.Metadata.ResourceVersion, accept)
	must(ask{method: "POST", path: "/api/v1/nodes", body: nodeBody(`"name":"cf-w"`, `"x":"1"`)})
	must(ask{method: "PATCH", header: mergeType, path: "/api/v1/nodes/cf-w", body: `{"metadata":{"labels":{"x":"2"}}}`})
	must(ask{method: "DELETE", path: "/api/v1/nodes/cf-w"})
	var got []string
	for len(got) < 3 {
		event, name, label := watch()
		if name == "cf-w" {
			got = append(got, event+" "+label)
		}
	}
	if want := []string{"ADDED 1", "MODIFIED 2", "DELETED 2"}; !slices.Equal(got, want) {
		t.Errorf("%s: events %q, want %q", accept, got, want)
	}
}

// conformPages reads a list in pages while it changes: the pages are of one version.
func conformPages(t *testing.T, client *asker) {
	t.Helper()
	for i := range 5 {
		client.do(t, ask{method: "POST", path: hyperNodesPath, body: hyperNodeBody(fmt.Sprintf(`"name":"cf-p%d"`, i), oneNode)})
	}
	var seen []string
	for next, pages := "", 0; ; pages++ {
		status, body := client.do(t, ask{method: "GET", path: hyperNodesPath + "?limit=2&continue=" + next})
		var list struct {
			Metadata struct{ Continue string }
			Items    []struct{ Metadata struct{ Name string } }
		}
		if err := json.Unmarshal([]byte(body), &list); status != http.StatusOK || err != nil || len(list.Items) > 2 {
			t.Fatalf("page %d: %d %s", pages, status, body)
		}
		for _, item := range list.Items {
			if strings.HasPrefix(item.Metadata.Name, "cf-p") {
				seen = append(seen, item.Metadata.Name)
			}
		}
		if pages == 0 {
			client.do(t, ask{method: "DELETE", path: hyperNodesPath + "/cf-p4"})
		}
		if next = list.Metadata.Continue; next == "" {
			break
		}
	}
	if want := []string{"cf-p0", "cf-p1", "cf-p2", "cf-p3", "cf-p4"}; !slices.Equal(seen, want) {
		t.Errorf("the pages have %q, want %q", seen, want)
	}
	if status, body := client.do(t, ask{method: "GET", path: hyperNodesPath + "?limit=2&continue=nonsense"}); status != http.StatusBadRequest {
		t.Errorf("a continue that is none: %d %s", status, body)
	}
	for i := range 4 {
		client.do(t, ask{method: "DELETE", path: fmt.Sprintf("%s/cf-p%d", hyperNodesPath, i)})
	}
}

// asker speaks plain HTTP to a server.
type asker struct{ bed.RawClient }

func (c *asker) request(t *testing.T, a ask) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(bed.Context(t), a.method, c.URL+a.path, strings.NewReader(a.body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+c.Token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	if name, value, given := strings.Cut(a.header, ": "); given {
		r.Header.Set(name, value)
	}
	answer, err := c.HTTP.Do(r)
	if err != nil {
		t.Fatalf("%s %s: %v", a.method, a.path, err)
	}
	return answer
}

func (c *asker) do(t *testing.T, a ask) (int, string) {
	t.Helper()
	answer := c.request(t, a)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

// watch returns a function that waits for the next event and says its type, the object's name and
// its label x (of an error its reason).
func (c *asker) watch(t *testing.T, path, accept string) func() (event, name, label string) {
	t.Helper()
	answer := c.request(t, ask{method: "GET", path: path, header: "Accept: " + accept})
	ctx, cancel := context.WithTimeout(bed.Context(t), 30*time.Second)
	t.Cleanup(cancel)
	context.AfterFunc(ctx, func() { answer.Body.Close() })
	binaryForm := strings.HasPrefix(answer.Header.Get("Content-Type"), "application/vnd.kubernetes.protobuf")
	if binaryForm != strings.Contains(accept, "protobuf") || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d, answered as %s", accept, answer.StatusCode, answer.Header.Get("Content-Type"))
	}
	reader := bufio.NewReader(answer.Body)
	return func() (string, string, string) {
		t.Helper()
		if !binaryForm {
			line, err := reader.ReadBytes('\n')
			if err != nil {
				t.Fatal(err)
			}
			return eventJSON(t, line)
		}
		var length uint32
		if err := binary.Read(reader, binary.BigEndian, &length); err != nil {
			t.Fatal(err)
		}
		frame := make([]byte, length)
		if _, err := io.ReadFull(reader, frame); err != nil {
			t.Fatal(err)
		}
		return eventProtobuf(t, frame)
	}
}

func eventJSON(t *testing.T, line []byte) (string, string, string) {
	t.Helper()
	var event struct {
		Type   string
		Object struct {
			metav1.ObjectMeta `json:"metadata"`
			Reason            string
		}
	}
	if err := json.Unmarshal(line, &event); err != nil {
		t.Fatalf("%v in %s", err, line)
	}
	if event.Type == "ERROR" {
		return event.Type, "", event.Object.Reason
	}
	return event.Type, event.Object.Name, event.Object.Labels["x"]
}

func eventProtobuf(t *testing.T, frame []byte) (string, string, string) {
	t.Helper()
	var event metav1.WatchEvent
	var unknown runtime.Unknown
	err := event.Unmarshal(frame)
	if err == nil {
		err = unknown.Unmarshal(bytes.TrimPrefix(event.Object.Raw, []byte("k8s\x00")))
	}
	if err != nil {
		t.Fatal(err)
	}
	if event.Type == "ERROR" {
		var status metav1.Status
		if err := status.Unmarshal(unknown.Raw); err != nil {
			t.Fatal(err)
		}
		return event.Type, "", string(status.Reason)
	}
	var object metav1.PartialObjectMetadata
	if err := object.Unmarshal(unknown.Raw); err != nil {
		t.Fatal(err)
	}
	return event.Type, object.Name, object.Labels["x"]
}
