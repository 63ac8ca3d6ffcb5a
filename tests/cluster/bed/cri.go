// SPDX-License-Identifier: Apache-2.0

package bed

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"k8s.io/apimachinery/pkg/api/resource"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// CRI is the recording container runtime (fakecri): what reaches it is what a container would get.
type CRI struct {
	process *Process
	socket  string
	log     string
}

// Call is one call of the kubelet that changed something.
type Call struct {
	Method   string          `json:"method"`
	Request  json.RawMessage `json:"request"`
	Response json.RawMessage `json:"response"`
	Error    string          `json:"error"`
}

// State is a container as the runtime sees it.
type State struct {
	ID, Pod, Container, State string
	Attempt                   uint32
	Code                      int32
}

func startCRI(t testing.TB, dir string) *CRI {
	t.Helper()
	c := &CRI{socket: filepath.Join(dir, "cri.sock"), log: filepath.Join(dir, "cri.jsonl")}
	c.process = Start(t, Command{Name: "fakecri", Log: filepath.Join(dir, "fakecri.log"),
		Argv: []string{os.Getenv("WEFT_FAKECRI"), "-socket", c.socket, "-log", c.log}})
	Poll(t, 5*time.Second, "fakecri serves", func() error {
		conn, err := net.Dial("unix", c.socket+".ctl")
		if err != nil {
			return err
		}
		return conn.Close()
	})
	return c
}

// Calls are all calls so far.
func (c *CRI) Calls(t testing.TB) []Call {
	t.Helper()
	file, err := os.Open(c.log)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var calls []Call
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var call Call
		if err := json.Unmarshal(lines.Bytes(), &call); err != nil {
			t.Fatalf("%s: %v", c.log, err)
		}
		calls = append(calls, call)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return calls
}

// Created are the configurations of the containers made so far, in order.
func (c *CRI) Created(t testing.TB) []*cri.CreateContainerRequest {
	t.Helper()
	var all []*cri.CreateContainerRequest
	for _, call := range c.Calls(t) {
		if call.Method != "CreateContainer" || call.Error != "" {
			continue
		}
		req := &cri.CreateContainerRequest{}
		if err := protojson.Unmarshal(call.Request, req); err != nil {
			t.Fatal(err)
		}
		all = append(all, req)
	}
	return all
}

// Config is the configuration of the one container that was made for the pod under that name.
func (c *CRI) Config(t testing.TB, pod, container string) *cri.ContainerConfig {
	t.Helper()
	var found []*cri.ContainerConfig
	for _, req := range c.Created(t) {
		if req.SandboxConfig.GetMetadata().GetName() == pod && req.Config.GetMetadata().GetName() == container {
			found = append(found, req.Config)
		}
	}
	if len(found) != 1 {
		t.Fatalf("container %s of pod %s was made %d times, want once", container, pod, len(found))
	}
	return found[0]
}

// Containers are the containers that the runtime knows.
func (c *CRI) Containers(t testing.TB) []State {
	t.Helper()
	var list []State
	resp := c.control(t, http.MethodGet, "/state")
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	return list
}

// Exit ends the running containers of that name in a pod.
func (c *CRI) Exit(t testing.TB, pod, container string, code int) {
	t.Helper()
	c.control(t, http.MethodPost, fmt.Sprintf("/exit?pod=%s&container=%s&code=%d", pod, container, code)).Body.Close()
}

func (c *CRI) control(t testing.TB, method, path string) *http.Response {
	t.Helper()
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", c.socket+".ctl")
		}}}
	req, err := http.NewRequest(method, "http://cri"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func quantity(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.DecimalSI) }
