// SPDX-License-Identifier: Apache-2.0

// Package fakeapi is as much of an API server, in memory, as weft's controller talks to: lists in
// pages, watches with bookmarks, preconditions, server-side apply, as JSON or as protobuf metadata.
// It costs nothing to start, so that thousands of fault schedules can run; that it answers like the
// real one is checked by one table of requests that both are asked (TestFaultServers).
package fakeapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Object is one in the form of its JSON. What the store holds is never changed, only replaced.
type Object = map[string]any

// kind is one collection.
type kind struct {
	group, version, plural, name string
	namespaced                   bool
	status                       bool // has a status subresource
	createOnUpdate               bool // a PUT may create
	unconditional                bool // a PUT may come without resourceVersion
	custom                       bool // a custom resource: no protobuf, deletions answered with a Status
}

var kinds = []*kind{
	{version: "v1", plural: "nodes", name: "Node", status: true, unconditional: true},
	{version: "v1", plural: "namespaces", name: "Namespace", unconditional: true},
	{version: "v1", plural: "pods", name: "Pod", namespaced: true, status: true, unconditional: true},
	{version: "v1", plural: "configmaps", name: "ConfigMap", namespaced: true, unconditional: true},
	{group: "coordination.k8s.io", version: "v1", plural: "leases", name: "Lease", namespaced: true, createOnUpdate: true},
	{group: "events.k8s.io", version: "v1", plural: "events", name: "Event", namespaced: true, createOnUpdate: true, unconditional: true},
	{group: "topology.volcano.sh", version: "v1alpha1", plural: "hypernodes", name: "HyperNode", status: true, custom: true},
}

func (k *kind) resource() schema.GroupResource {
	return schema.GroupResource{Group: k.group, Resource: k.plural}
}

func (k *kind) apiVersion() string {
	if k.group == "" {
		return k.version
	}
	return k.group + "/" + k.version
}

// Change is one write that was done.
type Change struct {
	Revision      int64
	Time          time.Time
	Verb          string // create, update, delete
	User          string
	Resource      string // plural
	Name          string
	Before, After Object // nil: there was, there is none
}

type entry struct {
	object   Object
	revision int64
	owners   owners
}

type key struct {
	kind            *kind
	namespace, name string
}

// Server is the fake. Its zero value is not ready: New.
type Server struct {
	mu        sync.Mutex
	revision  int64
	compacted int64 // watches from before this are told that it is gone
	objects   map[key]*entry
	history   []Change
	keys      []key         // of the history
	news      chan struct{} // closed at the next change
	snapshots map[string]*snapshot
	users     map[string]string // bearer token -> user
	uids      int

	// Metadata as protobuf for who asks for it; else JSON, as a server without it does.
	Protobuf bool
	// Initial lists by a watch (sendInitialEvents), as servers from 1.34 on.
	WatchList bool
	// Between two bookmarks of a watch.
	Bookmarks time.Duration
	// Called with each change, in order, while the store is locked; must be quick. May be nil.
	OnChange func(Change)
}

// New is an empty server.
func New() *Server {
	return &Server{objects: map[key]*entry{}, news: make(chan struct{}), revision: 100, compacted: 100,
		snapshots: map[string]*snapshot{}, users: map[string]string{}, Protobuf: true, WatchList: true, Bookmarks: time.Second}
}

// AddUser lets a bearer token in.
func (s *Server) AddUser(token, user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users[token] = user
}

// Compact forgets the past: watches from before now have to list again.
func (s *Server) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.compacted = s.revision
	s.snapshots = map[string]*snapshot{}
}

// Changes are the writes so far, from number from on.
func (s *Server) Changes(from int) []Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.history[from:])
}

// Objects of a plural, by name.
func (s *Server) Objects(plural string) map[string]Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]Object{}
	for k, e := range s.objects {
		if k.kind.plural == plural {
			all[k.name] = e.object
		}
	}
	return all
}

// commit stores an object (nil: deletes) as user's write. The caller holds the lock.
func (s *Server) commit(k key, user string, object Object, own owners) Object {
	before := s.objects[k]
	s.revision++
	change := Change{Revision: s.revision, Time: time.Now(), User: user, Resource: k.kind.plural, Name: k.name, Verb: "update"}
	if before != nil {
		change.Before = before.object
	} else {
		change.Verb = "create"
	}
	if object == nil {
		change.Verb = "delete"
		delete(s.objects, k)
	} else {
		object = with(object, "metadata", with(metadata(object), "resourceVersion", strconv.FormatInt(s.revision, 10)))
		s.objects[k] = &entry{object: object, revision: s.revision, owners: own}
		change.After = object
	}
	s.history = append(s.history, change)
	s.keys = append(s.keys, k)
	close(s.news)
	s.news = make(chan struct{})
	if s.OnChange != nil {
		s.OnChange(change)
	}
	return object
}

func (s *Server) newUID() string {
	s.uids++
	return fmt.Sprintf("00000000-0000-4000-8000-%012d", s.uids)
}

// with is the object with one field set; nil takes it away.
func with(object Object, field string, value any) Object {
	next := maps.Clone(object)
	if next == nil {
		next = Object{}
	}
	if value == nil {
		delete(next, field)
	} else {
		next[field] = value
	}
	return next
}

func metadata(object Object) Object {
	meta, _ := object["metadata"].(Object)
	return meta
}

func text(object Object, field string) string {
	value, _ := object[field].(string)
	return value
}

func labelsOf(object Object) labels.Set {
	set := labels.Set{}
	for name, value := range object2(metadata(object), "labels") {
		set[name], _ = value.(string)
	}
	return set
}

func object2(object Object, field string) Object {
	value, _ := object[field].(Object)
	return value
}

func deepCopy(object Object) Object {
	bytes, err := json.Marshal(object)
	if err != nil {
		panic(err) // it came from JSON
	}
	var copied Object
	if err := json.Unmarshal(bytes, &copied); err != nil {
		panic(err)
	}
	return copied
}

// snapshot is what the later pages of a list are cut from.
type snapshot struct {
	revision int64
	objects  []Object
}

// list is the objects of a kind in the order of their names. The caller holds the lock.
func (s *Server) list(kind *kind, namespace string, selects func(Object) bool) []Object {
	var keys []key
	for k, e := range s.objects {
		if k.kind == kind && (namespace == "" || k.namespace == namespace) && selects(e.object) {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b key) int {
		if a.namespace != b.namespace {
			return compare(a.namespace, b.namespace)
		}
		return compare(a.name, b.name)
	})
	objects := []Object{}
	for _, k := range keys {
		objects = append(objects, s.objects[k].object)
	}
	return objects
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func notFound(k key) *apierrors.StatusError {
	return apierrors.NewNotFound(k.kind.resource(), k.name)
}
