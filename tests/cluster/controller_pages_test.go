// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"weft.dev/weft/tests/cluster/bed"
)

// page asks a controller that was started with --listen 127.0.0.1:0.
func page(t *testing.T, c *bed.Controller, path string) (int, string) {
	t.Helper()
	var port string
	bed.Poll(t, 10*time.Second, "the port", func() error {
		found := regexp.MustCompile(`event=listening .* port=(\d+)`).FindStringSubmatch(c.Output())
		if found == nil {
			return fmt.Errorf("the controller does not say where it listens:\n%s", c.Tail(5))
		}
		port = found[1]
		return nil
	})
	answer, err := http.Get("http://127.0.0.1:" + port + path)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

// What two controllers say of themselves is what the API server says of their work.
func TestControllerPages(t *testing.T) {
	t.Parallel()
	f := newCluster(t, 64)
	args := []string{"--listen", "127.0.0.1:0"}
	all := []*bed.Controller{bed.StartController(t, f.cp, quickConfig, args...),
		bed.StartController(t, f.cp, quickConfig, args...)}
	f.settle(t, 15*time.Second, bed.ControllerUser)

	leaders := 0
	for _, c := range all {
		bed.Poll(t, 10*time.Second, "/readyz", func() error { // a follower that is still listing is not ready
			if status, body := page(t, c, "/readyz"); status != http.StatusOK {
				return fmt.Errorf("/readyz: %d %s", status, body)
			}
			return nil
		})
		if status, _ := page(t, c, "/livez"); status != http.StatusOK {
			t.Errorf("/livez: %d", status)
		}
		_, metrics := page(t, c, "/metrics")
		// the forest of 64 nodes: eight leaves, four spines, two cores
		want := []string{`weft_hypernodes{owner="weft",tier="1"} 8`, `weft_hypernodes{owner="weft",tier="2"} 4`,
			`weft_hypernodes{owner="weft",tier="3"} 2`, `weft_hypernodes{owner="foreign",tier=""} 0`, `weft_synced 1`,
			`weft_paused 0`}
		if strings.Contains(metrics, "\nweft_leader 1\n") {
			leaders++
			writes := f.cp.Audit.Since(t, 0, bed.HyperNodeWrites(bed.ControllerUser))
			want = append(want, `weft_nodes{state="selected"} 64`, `weft_nodes{state="placed"} 64`,
				`weft_nodes{state="unplaced"} 0`, fmt.Sprint("weft_hypernode_writes_total ", len(writes)),
				`weft_leader_acquired_total 1`)
		} else {
			want = append(want, `weft_hypernode_writes_total 0`, `weft_leader_acquired_total 0`)
		}
		for _, line := range want {
			if !strings.Contains(metrics, "\n"+line+"\n") {
				t.Errorf("/metrics lacks %q:\n%s", line, metrics)
			}
		}
		if status, body := page(t, c, "/"); status != http.StatusNotFound || !strings.Contains(body, "/metrics") {
			t.Errorf("/: %d %s", status, body)
		}
	}
	if leaders != 1 {
		t.Errorf("%d controllers say that they lead", leaders)
	}
}
