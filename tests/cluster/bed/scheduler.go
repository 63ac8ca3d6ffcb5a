// SPDX-License-Identifier: Apache-2.0

package bed

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Scheduler is a Volcano scheduler at work.
type Scheduler struct {
	*Process
	dir string
}

// schedulerConf lets gangs be placed by HyperNodes. Without the enqueue action the scheduler takes
// a pending PodGroup by itself.
const schedulerConf = `actions: "allocate"
tiers:
- plugins:
  - name: gang
- plugins:
  - name: predicates
  - name: nodeorder
  - name: binpack
  - name: network-topology-aware
    arguments:
      weight: 10
      hypernode.binpack.resources: nvidia.com/gpu
      hypernode.binpack.resources.nvidia.com/gpu: 5
`

// StartScheduler starts the Volcano scheduler that WEFT_VC_SCHEDULER names; without it the test is
// skipped. It schedules five times a second and logs at verbosity 4, which tells in each session
// whether HyperNodes were ready.
func StartScheduler(t testing.TB, cp *ControlPlane) *Scheduler {
	t.Helper()
	program := SchedulerProgram(t)
	dir := Dir(t)
	Write(t, filepath.Join(dir, "conf/volcano-scheduler.conf"), schedulerConf)
	return &Scheduler{dir: dir, Process: Start(t, Command{Name: "vc-scheduler", Log: filepath.Join(dir, "scheduler.log"), Dir: dir,
		Argv: []string{program, "--kubeconfig", cp.Kubeconfig(t, filepath.Join(dir, "kubeconfig"), "scheduler", "system:masters"),
			"--scheduler-conf", filepath.Join(dir, "conf/volcano-scheduler.conf"), "--leader-elect=false", "--cache-dump-dir", dir,
			"--enable-healthz=false", "--enable-metrics=false", "--schedule-period=200ms", "-v=4"},
		Env: []string{"DEBUG_SOCKET_DIR=" + dir}})}
}

// SchedulerProgram is the Volcano scheduler that WEFT_VC_SCHEDULER names; without it the test is skipped.
func SchedulerProgram(t testing.TB) string {
	t.Helper()
	program := os.Getenv("WEFT_VC_SCHEDULER")
	if program == "" {
		t.Skip("SKIP: WEFT_VC_SCHEDULER does not name a Volcano scheduler's binary")
	}
	return program
}

// Sessions counts the sessions so far, and those of them in which HyperNodes were not ready to be
// scheduled by.
func (s *Scheduler) Sessions() (all, notReady int) {
	const flag = "hyperNodesReadyToSchedule="
	for line := range strings.Lines(s.Output()) {
		if _, value, found := strings.Cut(line, flag); found {
			all++
			if !strings.HasPrefix(strings.Trim(value, `"`), "true") {
				notReady++
			}
		}
	}
	return all, notReady
}

// TreeNode is a HyperNode in the scheduler's cache.
type TreeNode struct {
	Tier   int
	Parent string // "" for one below the scheduler's virtual root
	Nodes  string // all nodes below, sorted, space separated
}

// Tree is the tree of HyperNodes as the scheduler has it: its own dump, asked for by SIGUSR1.
func (s *Scheduler) Tree(t testing.TB) (map[string]TreeNode, error) {
	t.Helper()
	for _, old := range s.dumps() {
		_ = os.Remove(old)
	}
	s.Signal(syscall.SIGUSR1)
	deadline := time.Now().Add(5 * time.Second * slow)
	for {
		if err := s.Check(); err != nil {
			return nil, err
		}
		if files := s.dumps(); len(files) > 0 {
			if tree, err := readDump(files[0]); err == nil {
				return tree, nil
			} else if time.Now().After(deadline) {
				return nil, err
			}
		} else if time.Now().After(deadline) {
			return nil, fmt.Errorf("%s: no dump", s.Name)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (s *Scheduler) dumps() []string {
	files, _ := filepath.Glob(filepath.Join(s.dir, "snapshot-*.json"))
	return files
}

// readDump reads the six documents of a dump: nodes, HyperNodes by tier, tiers by name, nodes by
// HyperNode, HyperNodes, jobs.
func readDump(path string) (map[string]TreeNode, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	type set map[string]struct{}
	var byTier map[int]set
	var nodes map[string]set
	var info map[string]struct{ Parent string }
	decoder := json.NewDecoder(file)
	for _, to := range []any{new(json.RawMessage), &byTier, new(json.RawMessage), &nodes, &info, new(json.RawMessage)} {
		if err := decoder.Decode(to); err != nil && err != io.EOF {
			return nil, fmt.Errorf("%s: %w", path, err)
		} else if err != nil {
			return nil, fmt.Errorf("%s is not complete", path)
		}
	}
	tree := map[string]TreeNode{}
	for tier, names := range byTier {
		for name := range names {
			parent := info[name].Parent
			if _, known := info[parent]; !known || strings.HasPrefix(parent, "<") {
				parent = ""
			}
			if !strings.HasPrefix(name, "<") { // the virtual root
				tree[name] = TreeNode{Tier: tier, Parent: parent, Nodes: strings.Join(slices.Sorted(maps.Keys(nodes[name])), " ")}
			}
		}
	}
	return tree, nil
}
