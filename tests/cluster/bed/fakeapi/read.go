// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// form is how objects are answered: whole or their metadata only, as JSON or as protobuf.
type form struct {
	kind     *kind
	metadata bool
	protobuf bool
}

// Protobuf's media type.
const protobufType = "application/vnd.kubernetes.protobuf"

// negotiate takes the first media type that can be given.
func negotiate(q *request, accept string, protobuf bool) (form, error) {
	if accept == "" {
		accept = "*/*"
	}
	for one := range strings.SplitSeq(accept, ",") {
		parts := strings.Split(strings.ReplaceAll(one, " ", ""), ";")
		f := form{kind: q.kind, protobuf: parts[0] == protobufType}
		as := ""
		for _, parameter := range parts[1:] {
			if name, value, _ := strings.Cut(parameter, "="); name == "as" {
				as = value
			}
		}
		f.metadata = as == "PartialObjectMetadata" || as == "PartialObjectMetadataList"
		switch {
		case as != "" && !f.metadata:
		case f.protobuf && !(protobuf && f.metadata):
		case f.protobuf, parts[0] == "application/json", parts[0] == "*/*", parts[0] == "application/*":
			return f, nil
		}
	}
	return form{}, &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusNotAcceptable,
		Reason: metav1.StatusReasonNotAcceptable, Message: "only the following media types are accepted: application/json"}}
}

func selector(query url.Values) (func(Object) bool, error) {
	byLabel, err := labels.Parse(query.Get("labelSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	byField, err := fields.ParseSelector(query.Get("fieldSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return func(object Object) bool {
		meta := metadata(object)
		spec, _ := object["spec"].(map[string]any) // a pod's node
		return byLabel.Matches(labelsOf(object)) &&
			byField.Matches(fields.Set{"metadata.name": text(meta, "name"), "metadata.namespace": text(meta, "namespace"),
				"spec.nodeName": text(spec, "nodeName")})
	}, nil
}

// page is one page of a list.
func (s *Server) page(w http.ResponseWriter, q *request, f form, selects func(Object) bool) {
	limit, _ := strconv.Atoi(q.query.Get("limit"))
	id, from := "", 0
	if token := q.query.Get("continue"); token != "" {
		text, err := base64.RawURLEncoding.DecodeString(token)
		if err == nil {
			_, err = fmt.Sscanf(string(text), "%s %d", &id, &from)
		}
		if err != nil {
			fail(w, apierrors.NewBadRequest("continue key is not valid"))
			return
		}
	}
	s.mu.Lock()
	snap := s.snapshots[id]
	if id == "" {
		snap = &snapshot{revision: s.revision, objects: s.list(q.kind, q.namespace, selects)}
		s.uids++
		id = strconv.Itoa(s.uids)
	}
	s.mu.Unlock()
	if snap == nil {
		fail(w, apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result."))
		return
	}
	meta := metav1.ListMeta{ResourceVersion: strconv.FormatInt(snap.revision, 10)}
	objects := snap.objects[from:]
	if limit > 0 && len(objects) > limit {
		objects = objects[:limit]
		meta.Continue = base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%s %d", id, from+limit))
		s.mu.Lock()
		s.snapshots[id] = snap
		s.mu.Unlock()
	}
	f.list(w, meta, objects)
}

// partial is an object's metadata alone.
func (f form) partial(object Object) *metav1.PartialObjectMetadata {
	bytes, err := json.Marshal(object["metadata"])
	if err != nil {
		panic(err)
	}
	p := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: "meta.k8s.io/v1"}}
	if err := json.Unmarshal(bytes, &p.ObjectMeta); err != nil {
		panic(err)
	}
	return p
}

type marshaler interface{ Marshal() ([]byte, error) }

// envelope is the magic number and what the object is, around its bytes.
func envelope(kind, version string, object marshaler) []byte {
	raw, err := object.Marshal()
	if err != nil {
		panic(err)
	}
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{Kind: kind, APIVersion: version}, Raw: raw}
	bytes, err := unknown.Marshal()
	if err != nil {
		panic(err)
	}
	return append([]byte("k8s\x00"), bytes...)
}

func (f form) value(object Object) any {
	if f.metadata {
		return f.partial(object)
	}
	return object
}

func (f form) one(w http.ResponseWriter, object Object) {
	if f.protobuf {
		write(w, protobufType, envelope("PartialObjectMetadata", "meta.k8s.io/v1", f.partial(object)))
		return
	}
	answer(w, http.StatusOK, f.value(object))
}

func write(w http.ResponseWriter, contentType string, bytes []byte) {
	w.Header().Set("Content-Type", contentType)
	_, _ = w.Write(bytes)
}

func (f form) list(w http.ResponseWriter, meta metav1.ListMeta, objects []Object) {
	if f.protobuf {
		list := &metav1.PartialObjectMetadataList{ListMeta: meta}
		for _, object := range objects {
			list.Items = append(list.Items, *f.partial(object))
		}
		write(w, protobufType, envelope("PartialObjectMetadataList", "meta.k8s.io/v1", list))
		return
	}
	kind, version := f.kind.name+"List", f.kind.apiVersion()
	if f.metadata {
		kind, version = "PartialObjectMetadataList", "meta.k8s.io/v1"
	}
	items := []any{}
	for _, object := range objects {
		items = append(items, f.value(object))
	}
	answer(w, http.StatusOK, map[string]any{"kind": kind, "apiVersion": version, "metadata": meta, "items": items})
}

// frame is one event of a watch as it stands in the stream.
func (f form) frame(event string, object Object) []byte {
	if f.protobuf {
		return protobufFrame(event, envelope("PartialObjectMetadata", "meta.k8s.io/v1", f.partial(object)))
	}
	bytes, err := json.Marshal(map[string]any{"type": event, "object": f.value(object)})
	if err != nil {
		panic(err)
	}
	return append(bytes, '\n')
}

func protobufFrame(event string, object []byte) []byte {
	message := metav1.WatchEvent{Type: event, Object: runtime.RawExtension{Raw: object}}
	bytes, err := message.Marshal()
	if err != nil {
		panic(err)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(bytes))), bytes...)
}

// ErrorFrame is the event with which a server ends a watch whose version it has forgotten.
func ErrorFrame(protobuf bool, status metav1.Status) []byte {
	if protobuf {
		return protobufFrame("ERROR", envelope("Status", "v1", &status))
	}
	status.Kind, status.APIVersion = "Status", "v1"
	bytes, err := json.Marshal(map[string]any{"type": "ERROR", "object": status})
	if err != nil {
		panic(err)
	}
	return append(bytes, '\n')
}

// Gone is the Status of a version that was forgotten.
func Gone() metav1.Status {
	return apierrors.NewResourceExpired("too old resource version").Status()
}

func (f form) bookmark(revision int64, initial bool) Object {
	meta := Object{"resourceVersion": strconv.FormatInt(revision, 10), "creationTimestamp": nil}
	if initial {
		meta["annotations"] = Object{metav1.InitialEventsAnnotationKey: "true"}
	}
	return Object{"kind": f.kind.name, "apiVersion": f.kind.apiVersion(), "metadata": meta}
}

// stream writes a watch's events.
type stream struct {
	w     http.ResponseWriter
	flush func()
	form  form
}

func (s *stream) send(event string, object Object) {
	_, _ = s.w.Write(s.form.frame(event, object))
	s.flush()
}

// begin is where a watch starts in the history, after what it is told first.
func (s *Server) begin(q *request, out *stream, selects func(Object) bool) (int, error) {
	version, initial := q.query.Get("resourceVersion"), q.query.Get("sendInitialEvents") == "true"
	if initial && !s.WatchList {
		return 0, &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity,
			Reason: metav1.StatusReasonInvalid, Message: "ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"}}
	}
	if initial && q.query.Get("resourceVersionMatch") != "NotOlderThan" {
		return 0, &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity,
			Reason: metav1.StatusReasonInvalid, Message: "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden"}}
	}
	from, err := strconv.ParseInt(version, 10, 64)
	if err != nil && version != "" {
		return 0, apierrors.NewBadRequest("Invalid value for resourceVersion")
	}
	s.mu.Lock()
	revision, compacted, at := s.revision, s.compacted, len(s.history)
	var objects []Object
	if from == 0 || initial {
		objects = s.list(q.kind, q.namespace, selects)
	} else {
		for at > 0 && s.history[at-1].Revision > from {
			at--
		}
	}
	s.mu.Unlock()
	out.head()
	if from > 0 && !initial && from < compacted {
		_, _ = out.w.Write(ErrorFrame(out.form.protobuf, Gone()))
		return -1, nil
	}
	for _, object := range objects {
		out.send("ADDED", object)
	}
	if initial {
		out.send("BOOKMARK", out.form.bookmark(revision, true))
	}
	return at, nil
}

func (s *stream) head() {
	contentType := "application/json"
	if s.form.protobuf {
		contentType = protobufType + ";stream=watch"
	}
	s.w.Header().Set("Content-Type", contentType)
	s.w.WriteHeader(http.StatusOK)
	s.flush()
}

func (s *Server) watch(w http.ResponseWriter, r *http.Request, q *request, f form, selects func(Object) bool) {
	flush := http.NewResponseController(w)
	out := &stream{w: w, form: f, flush: func() { _ = flush.Flush() }}
	at, err := s.begin(q, out, selects)
	if err != nil {
		fail(w, err)
		return
	}
	if at < 0 {
		return
	}
	seconds, _ := strconv.Atoi(q.query.Get("timeoutSeconds"))
	if seconds == 0 {
		seconds = 1800
	}
	end := time.After(time.Duration(seconds) * time.Second)
	bookmarks := time.NewTicker(s.Bookmarks)
	defer bookmarks.Stop()
	for {
		s.mu.Lock()
		news, changes, keys, revision := s.news, s.history[at:], s.keys[at:], s.revision
		s.mu.Unlock()
		for i, change := range changes {
			if keys[i].kind == q.kind && (q.namespace == "" || q.namespace == keys[i].namespace) {
				out.tell(change, selects)
			}
		}
		at += len(changes)
		select {
		case <-r.Context().Done():
			return
		case <-end:
			return
		case <-bookmarks.C:
			if q.query.Get("allowWatchBookmarks") == "true" && len(changes) == 0 {
				out.send("BOOKMARK", f.bookmark(revision, false))
			}
		case <-news:
		}
	}
}

// tell says what a change is for somebody who sees some objects only.
func (s *stream) tell(change Change, selects func(Object) bool) {
	was := change.Before != nil && selects(change.Before)
	is := change.After != nil && selects(change.After)
	switch {
	case is && was:
		s.send("MODIFIED", change.After)
	case is:
		s.send("ADDED", change.After)
	case was:
		last := change.After
		if last == nil {
			last = change.Before
		}
		last = with(last, "metadata", with(metadata(last), "resourceVersion", strconv.FormatInt(change.Revision, 10)))
		s.send("DELETED", last)
	}
}
