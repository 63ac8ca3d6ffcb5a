// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// request is one as it was routed.
type request struct {
	key
	subresource string
	user        string
	query       url.Values
	manager     string
	contentType string
	body        []byte
}

func canonical(value any) string {
	bytes, err := json.Marshal(value)
	if err != nil {
		panic(err) // it came from JSON
	}
	return string(bytes)
}

func (q *request) dryRun() bool { return q.query.Get("dryRun") == "All" }

func (q *request) decode() (Object, error) {
	var object Object
	if err := json.Unmarshal(q.body, &object); err != nil {
		return nil, apierrors.NewBadRequest("the object provided is unrecognized: " + err.Error())
	}
	if kind := text(object, "kind"); kind != q.kind.name || text(object, "apiVersion") != q.kind.apiVersion() {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%s %s in the body of a %s", text(object, "apiVersion"), kind, q.kind.name))
	}
	return object, nil
}

func (q *request) invalid(problems ...*field.Error) error {
	return apierrors.NewInvalid(schema.GroupKind{Group: q.kind.group, Kind: q.kind.name}, q.name, problems)
}

// read reads the request's body.
func (q *request) read(r *http.Request) error {
	bytes, err := io.ReadAll(io.LimitReader(r.Body, 4<<20))
	q.body = bytes
	q.contentType, _, _ = mime.ParseMediaType(r.Header.Get("Content-Type"))
	if q.manager = q.query.Get("fieldManager"); q.manager == "" {
		q.manager, _, _ = strings.Cut(r.UserAgent(), "/")
	}
	return err
}

// write carries a write out and returns what is answered.
func (s *Server) write(q *request, method string) (int, any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch method {
	case http.MethodPost:
		return s.create(q)
	case http.MethodPut:
		return s.replace(q)
	case http.MethodPatch:
		return s.patch(q)
	case http.MethodDelete:
		return s.remove(q)
	}
	return 0, nil, apierrors.NewMethodNotSupported(q.kind.resource(), strings.ToLower(method))
}

func (s *Server) create(q *request) (int, any, error) {
	object, err := q.decode()
	if err != nil {
		return 0, nil, err
	}
	meta := metadata(object)
	if text(meta, "resourceVersion") != "" {
		return 0, nil, &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
			Message: "resourceVersion should not be set on objects to be created"}}
	}
	if q.name = text(meta, "name"); q.name == "" && text(meta, "generateName") != "" {
		s.uids++
		q.name = fmt.Sprintf("%s%d", text(meta, "generateName"), s.uids)
	}
	if namespace := text(meta, "namespace"); q.kind.namespaced && namespace != "" && namespace != q.namespace {
		return 0, nil, apierrors.NewBadRequest("the namespace of the object does not match the namespace on the request")
	}
	if err := q.check(object); err != nil {
		return 0, nil, err
	}
	if q.kind.namespaced && s.objects[key{kind: kinds[1], name: q.namespace}] == nil {
		return 0, nil, apierrors.NewNotFound(kinds[1].resource(), q.namespace)
	}
	if s.objects[q.key] != nil {
		return 0, nil, apierrors.NewAlreadyExists(q.kind.resource(), q.name)
	}
	return s.made(q, object, owners{}.own(q.manager, nil, object))
}

func (s *Server) made(q *request, object Object, own owners) (int, any, error) {
	meta := with(with(metadata(object), "uid", s.newUID()), "name", q.name)
	meta = with(meta, "creationTimestamp", time.Now().UTC().Format(time.RFC3339))
	if q.kind.namespaced {
		meta = with(meta, "namespace", q.namespace)
	}
	object = with(object, "metadata", with(meta, "generation", float64(1)))
	if q.kind.status && q.kind.custom {
		object = with(object, "status", nil)
	}
	return http.StatusCreated, s.done(q, object, own), nil
}

// done commits, or does as if.
func (s *Server) done(q *request, object Object, own owners) Object {
	if q.dryRun() {
		return object
	}
	return s.commit(q.key, q.user, object, own)
}

// check is what the server asks of an object itself.
func (q *request) check(object Object) error {
	name := text(metadata(object), "name")
	if why := validation.IsDNS1123Subdomain(name); len(why) > 0 {
		return q.invalid(field.Invalid(field.NewPath("metadata", "name"), name, why[0]))
	}
	if !q.kind.custom {
		return nil
	}
	spec := object2(object, "spec")
	if q.query.Get("fieldValidation") == "Strict" {
		for name := range spec {
			if name != "tier" && name != "tierName" && name != "members" {
				return apierrors.NewBadRequest(fmt.Sprintf("strict decoding error: unknown field %q", "spec."+name))
			}
		}
	}
	if tier, ok := spec["tier"].(float64); !ok || tier < 0 {
		return q.invalid(field.Invalid(field.NewPath("spec", "tier"), spec["tier"], "should be greater than or equal to 0"))
	}
	return nil
}

// conflict checks the preconditions that an object or its options name.
func conflict(q *request, live Object, meta Object) error {
	for _, name := range []string{"uid", "resourceVersion"} {
		if want, is := text(meta, name), text(metadata(live), name); want != "" && want != is {
			return apierrors.NewConflict(q.kind.resource(), q.name, fmt.Errorf("precondition %s %s, the object has %s", name, want, is))
		}
	}
	return nil
}

func (s *Server) replace(q *request) (int, any, error) {
	object, err := q.decode()
	if err != nil {
		return 0, nil, err
	}
	meta := metadata(object)
	if name := text(meta, "name"); name != q.name {
		return 0, nil, apierrors.NewBadRequest("the name of the object (" + name + ") does not match the name on the URL (" + q.name + ")")
	}
	live := s.objects[q.key]
	version := text(meta, "resourceVersion")
	switch {
	case live == nil && q.kind.createOnUpdate:
		return s.made(q, object, owners{}.own(q.manager, nil, object))
	case live == nil:
		return 0, nil, notFound(q.key)
	case version == "" && !q.kind.unconditional:
		return 0, nil, q.invalid(field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update"))
	}
	if err := conflict(q, live.object, meta); err != nil {
		return 0, nil, err
	}
	if err := q.check(object); err != nil {
		return 0, nil, err
	}
	return s.changed(q, live, object, live.owners.own(q.manager, live.object, object))
}

// kept are the fields of metadata that no write changes.
var kept = []string{"uid", "creationTimestamp", "generation", "resourceVersion", "deletionTimestamp", "namespace"}

// changed stores an object in the place of live; one that is no other is not written.
func (s *Server) changed(q *request, live *entry, object Object, own owners) (int, any, error) {
	meta := metadata(object)
	for _, name := range kept {
		meta = with(meta, name, metadata(live.object)[name])
	}
	if q.kind.status {
		if q.subresource == "status" {
			object = with(live.object, "status", object["status"])
			meta = metadata(live.object)
		} else {
			object = with(object, "status", live.object["status"])
		}
	}
	if !same(object["spec"], live.object["spec"]) {
		generation, _ := meta["generation"].(float64)
		meta = with(meta, "generation", generation+1)
	}
	object = with(object, "metadata", meta)
	if same(object, live.object) {
		if !q.dryRun() {
			live.owners = own
		}
		return http.StatusOK, live.object, nil
	}
	if text(meta, "deletionTimestamp") != "" && meta["finalizers"] == nil && !q.dryRun() {
		s.commit(q.key, q.user, nil, nil)
		return http.StatusOK, object, nil
	}
	return http.StatusOK, s.done(q, object, own), nil
}

func (s *Server) patch(q *request) (int, any, error) {
	var body Object
	if err := json.Unmarshal(q.body, &body); err != nil {
		return 0, nil, apierrors.NewBadRequest(err.Error())
	}
	live := s.objects[q.key]
	switch q.contentType {
	case "application/merge-patch+json":
		if live == nil {
			return 0, nil, notFound(q.key)
		}
		if err := conflict(q, live.object, metadata(body)); err != nil {
			return 0, nil, err
		}
		object := mergePatch(live.object, body)
		if err := q.check(object); err != nil {
			return 0, nil, err
		}
		return s.changed(q, live, object, live.owners.own(q.manager, live.object, object))
	case "application/apply-patch+yaml":
		return s.apply(q, live, body)
	}
	return 0, nil, &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType,
		Reason: metav1.StatusReasonUnsupportedMediaType, Message: "the body of the request was in an unknown format"}}
}

func (s *Server) apply(q *request, live *entry, wanted Object) (int, any, error) {
	if q.query.Get("fieldManager") == "" {
		return 0, nil, apierrors.NewInvalid(schema.GroupKind{Group: "meta.k8s.io", Kind: "PatchOptions"}, "",
			field.ErrorList{field.Required(field.NewPath("fieldManager"), "is required for apply patch")})
	}
	if _, err := q.decode(); err != nil {
		return 0, nil, err
	}
	if live == nil {
		if uid := text(metadata(wanted), "uid"); uid != "" {
			return 0, nil, apierrors.NewConflict(q.kind.resource(), q.name, fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", uid))
		}
		wanted = with(wanted, "metadata", with(metadata(wanted), "name", q.name))
		if err := q.check(wanted); err != nil {
			return 0, nil, err
		}
		return s.made(q, wanted, owners{}.own(q.manager, nil, wanted))
	}
	if uid := text(metadata(wanted), "uid"); uid != "" && uid != text(metadata(live.object), "uid") {
		return 0, nil, q.invalid(field.Invalid(field.NewPath("metadata", "uid"), uid, "field is immutable"))
	}
	if err := conflict(q, live.object, metadata(wanted)); err != nil {
		return 0, nil, err
	}
	object, own, fights := live.owners.apply(q.manager, live.object, wanted, q.query.Get("force") == "true")
	if len(fights) > 0 {
		return 0, nil, apierrors.NewApplyConflict([]metav1.StatusCause{{Type: metav1.CauseTypeFieldManagerConflict}},
			fmt.Sprintf("Apply failed: conflict with %q", fights))
	}
	return s.changed(q, live, object, own)
}

func (s *Server) remove(q *request) (int, any, error) {
	var options struct {
		Preconditions Object   `json:"preconditions"`
		DryRun        []string `json:"dryRun"`
	}
	if len(q.body) > 0 {
		if err := json.Unmarshal(q.body, &options); err != nil {
			return 0, nil, apierrors.NewBadRequest(err.Error())
		}
	}
	live := s.objects[q.key]
	if live == nil {
		return 0, nil, notFound(q.key)
	}
	if err := conflict(q, live.object, options.Preconditions); err != nil {
		return 0, nil, err
	}
	meta := metadata(live.object)
	uid := text(meta, "uid")
	switch {
	case len(options.DryRun) > 0:
	case meta["finalizers"] != nil && text(meta, "deletionTimestamp") == "":
		meta = with(meta, "deletionTimestamp", time.Now().UTC().Format(time.RFC3339))
		return http.StatusOK, s.commit(q.key, q.user, with(live.object, "metadata", meta), live.owners), nil
	case meta["finalizers"] != nil:
		return http.StatusOK, live.object, nil
	default:
		s.commit(q.key, q.user, nil, nil)
	}
	return http.StatusOK, Object{"kind": "Status", "apiVersion": "v1", "metadata": Object{}, "status": "Success",
		"details": Object{"name": q.name, "group": q.kind.group, "kind": q.kind.plural, "uid": uid}}, nil
}
