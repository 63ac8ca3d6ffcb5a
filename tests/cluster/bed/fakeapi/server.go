// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// route finds out what a path is about; nil: nothing that is served.
func route(path string) *request {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	group := ""
	switch {
	case len(parts) > 3 && parts[0] == "apis":
		group, parts = parts[1], parts[2:]
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[1:]
	case len(parts) == 3 && parts[0] == "apis":
		return nil
	default:
		return nil
	}
	version, parts := parts[0], parts[1:]
	q := &request{}
	if len(parts) > 2 && parts[0] == "namespaces" {
		q.namespace, parts = parts[1], parts[2:]
	}
	for _, k := range kinds {
		if k.group == group && k.version == version && k.plural == parts[0] && (k.namespaced || q.namespace == "") {
			q.kind = k
		}
	}
	if len(parts) > 1 {
		q.name = parts[1]
	}
	if len(parts) > 2 {
		q.subresource = parts[2]
	}
	if q.kind == nil || len(parts) > 3 || (q.subresource != "" && (q.subresource != "status" || !q.kind.status)) {
		return nil
	}
	return q
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.mu.Lock()
	user, known := s.users[token]
	s.mu.Unlock()
	if !known {
		fail(w, apierrors.NewUnauthorized("Unauthorized"))
		return
	}
	q := route(r.URL.Path)
	if q == nil {
		http.Error(w, "404 page not found", http.StatusNotFound)
		return
	}
	q.user, q.query = user, r.URL.Query()
	if r.Method == http.MethodGet {
		s.get(w, r, q)
		return
	}
	if err := q.read(r); err != nil {
		panic(http.ErrAbortHandler) // half a request
	}
	if (q.name == "") != (r.Method == http.MethodPost) {
		fail(w, apierrors.NewMethodNotSupported(q.kind.resource(), strings.ToLower(r.Method)))
		return
	}
	status, object, err := s.write(q, r.Method)
	if err != nil {
		fail(w, err)
		return
	}
	answer(w, status, object)
}

func answer(w http.ResponseWriter, status int, object any) {
	bytes, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(bytes)
}

func statusOf(err error) metav1.Status {
	var known apierrors.APIStatus
	if !errors.As(err, &known) {
		known = apierrors.NewInternalError(err)
	}
	status := known.Status()
	status.Kind, status.APIVersion = "Status", "v1"
	return status
}

func fail(w http.ResponseWriter, err error) {
	status := statusOf(err)
	answer(w, int(status.Code), status)
}

func (s *Server) get(w http.ResponseWriter, r *http.Request, q *request) {
	form, err := negotiate(q, r.Header.Get("Accept"), s.Protobuf)
	if err != nil {
		fail(w, err)
		return
	}
	if q.name != "" {
		s.mu.Lock()
		live := s.objects[q.key]
		s.mu.Unlock()
		if live == nil {
			fail(w, notFound(q.key))
			return
		}
		form.one(w, live.object)
		return
	}
	selects, err := selector(q.query)
	switch {
	case err != nil:
		fail(w, err)
	case q.query.Get("watch") == "true" || q.query.Get("watch") == "1":
		s.watch(w, r, q, form, selects)
	default:
		s.page(w, q, form, selects)
	}
}
