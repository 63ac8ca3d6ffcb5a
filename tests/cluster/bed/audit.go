// SPDX-License-Identifier: Apache-2.0

package bed

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"testing"
	"time"
)

// Audit reads an API server's audit log: the one account of who wrote what, in which order.
// The server writes a request's line before it answers the request.
type Audit struct{ path string }

// Event is one write as the server saw it.
type Event struct {
	ID    string `json:"auditID"`
	Verb  string `json:"verb"`
	Stage string `json:"stage"`
	URI   string `json:"requestURI"`
	Agent string `json:"userAgent"`
	User  struct {
		Username string `json:"username"`
	} `json:"user"`
	Object struct {
		Resource        string `json:"resource"`
		Subresource     string `json:"subresource"`
		Namespace       string `json:"namespace"`
		Name            string `json:"name"`
		ResourceVersion string `json:"resourceVersion"`
	} `json:"objectRef"`
	Response struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	Body     json.RawMessage `json:"requestObject"`
	Received time.Time       `json:"requestReceivedTimestamp"`
	Time     time.Time       `json:"stageTimestamp"`
}

// Name is the object's name; that of a POST is in its body.
func (e Event) Name() string {
	if e.Object.Name != "" {
		return e.Object.Name
	}
	var body struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal(e.Body, &body)
	return body.Metadata.Name
}

// BaseVersion is the resourceVersion that the object must have for the write; "" if there must be none
// yet, as for a POST, or if any will do.
func (e Event) BaseVersion() string {
	type version struct {
		ResourceVersion string `json:"resourceVersion"`
	}
	var body struct {
		Metadata      version `json:"metadata"`
		Preconditions version `json:"preconditions"` // of a DELETE
	}
	_ = json.Unmarshal(e.Body, &body)
	if e.Verb == "delete" {
		return body.Preconditions.ResourceVersion
	}
	return body.Metadata.ResourceVersion
}

// OK says whether the server did what was asked.
func (e Event) OK() bool { return e.Response.Code >= 200 && e.Response.Code < 300 }

func (e Event) String() string {
	resource := e.Object.Resource
	if e.Object.Subresource != "" {
		resource += "/" + e.Object.Subresource
	}
	return fmt.Sprintf("%s %s %s by %s -> %d", e.Verb, resource, e.Name(), e.User.Username, e.Response.Code)
}

// Mark is a place in the log: what comes later is Since it.
type Mark int64

// Mark is the end of the log now.
func (a *Audit) Mark(t testing.TB) Mark {
	t.Helper()
	text := a.read(t, 0)
	return Mark(bytes.LastIndexByte(text, '\n') + 1)
}

// read is the log from a place on.
func (a *Audit) read(t testing.TB, mark Mark) []byte {
	t.Helper()
	file, err := os.Open(a.path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	end, err := file.Seek(0, io.SeekEnd)
	if err == nil && end < int64(mark) {
		t.Fatalf("%s has become shorter", a.path)
	}
	if err == nil {
		_, err = file.Seek(int64(mark), io.SeekStart)
	}
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Since is every finished write after mark that keep accepts, in the order of the server's answers.
func (a *Audit) Since(t testing.TB, mark Mark, keep func(Event) bool) []Event {
	t.Helper()
	events, _ := a.Follow(t, mark, keep)
	return events
}

// Follow is Since, and the place to go on from: to look again at all that was read before, each time
// that something is waited for, costs a large log more than what is measured.
func (a *Audit) Follow(t testing.TB, mark Mark, keep func(Event) bool) ([]Event, Mark) {
	t.Helper()
	text := a.read(t, mark)
	var events []Event
	for {
		end := bytes.IndexByte(text, '\n')
		if end < 0 {
			return events, mark
		}
		var e Event
		if err := json.Unmarshal(text[:end], &e); err != nil {
			t.Fatalf("%s: %v", a.path, err)
		}
		if e.Stage == "ResponseComplete" && keep(e) {
			events = append(events, e)
		}
		text = text[end+1:]
		mark += Mark(end) + 1
	}
}

// HyperNodeWrites accepts the writes of HyperNodes by a user, the refused ones too.
func HyperNodeWrites(user string) func(Event) bool {
	return func(e Event) bool { return e.Object.Resource == "hypernodes" && e.User.Username == user }
}

// Writes accepts all writes by a user but those that keep its lease and those that only tell people
// something: events and the status, which are counted by tests of their own.
func Writes(user string) func(Event) bool {
	return func(e Event) bool {
		switch e.Object.Resource {
		case "leases", "events", "configmaps":
			return false
		}
		return e.User.Username == user
	}
}

// WritesOf accepts a user's writes of one resource, the refused ones too.
func WritesOf(user, resource string) func(Event) bool {
	return func(e Event) bool { return e.Object.Resource == resource && e.User.Username == user }
}

func base64Of(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
