// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Ask makes a request without a connection. A PATCH is a merge patch. An answer that is no 2xx is
// an error that k8s.io/apimachinery's errors package understands.
func (s *Server) Ask(token, method, path string, body Object) (Object, error) {
	var text []byte
	if body != nil {
		text = []byte(canonical(body))
	}
	r := httptest.NewRequest(method, path, bytes.NewReader(text))
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if w.Code >= 300 {
		status := metav1.Status{Code: int32(w.Code), Message: w.Body.String()}
		_ = json.Unmarshal(w.Body.Bytes(), &status)
		return nil, &apierrors.StatusError{ErrStatus: status}
	}
	var object Object
	err := json.Unmarshal(w.Body.Bytes(), &object)
	return object, err
}

// IsNotFound says whether an error of Ask is a 404.
func IsNotFound(err error) bool { return apierrors.IsNotFound(err) }
