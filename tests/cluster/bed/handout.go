// SPDX-License-Identifier: Apache-2.0

package bed

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// What happened to pods and devices, as the runtime, the kubelet and the API server saw it.

type held struct {
	pod string // UID and name
	ids []string
}

// Twice replays the runtime's log and names each device that a container got, by its
// NVIDIA_VISIBLE_DEVICES, while another container that had it still ran. handed is how often one was
// handed out.
func (c *CRI) Twice(t testing.TB) (problems []string, handed int) {
	t.Helper()
	live := map[string]held{}      // container id
	sandbox := map[string]string{} // container id -> sandbox
	for _, call := range c.Calls(t) {
		if call.Error != "" {
			continue
		}
		var ids struct{ ContainerID, PodSandboxID string }
		_ = json.Unmarshal(call.Request, &ids)
		switch call.Method {
		case "CreateContainer":
			req, resp := &cri.CreateContainerRequest{}, &cri.CreateContainerResponse{}
			if protojson.Unmarshal(call.Request, req) != nil || protojson.Unmarshal(call.Response, resp) != nil {
				t.Fatalf("a CreateContainer of the log cannot be read: %s", call.Request)
			}
			now := held{pod: req.SandboxConfig.GetMetadata().GetUid() + " " + req.SandboxConfig.GetMetadata().GetName(), ids: Visible(req.Config)}
			handed += len(now.ids)
			for _, other := range live {
				for _, id := range now.ids {
					for _, taken := range other.ids {
						if id == taken {
							problems = append(problems, fmt.Sprintf("%s went to pod %s while pod %s had it", id, now.pod, other.pod))
						}
					}
				}
			}
			live[resp.ContainerId], sandbox[resp.ContainerId] = now, req.PodSandboxId
		case "Ended", "RemoveContainer":
			delete(live, ids.ContainerID)
		case "RemovePodSandbox":
			for id, of := range sandbox {
				if of == ids.PodSandboxID {
					delete(live, id)
				}
			}
		}
	}
	return problems, handed
}

// Visible are the ids in a container's NVIDIA_VISIBLE_DEVICES.
func Visible(config *cri.ContainerConfig) []string {
	for _, env := range config.GetEnvs() {
		if env.Key == "NVIDIA_VISIBLE_DEVICES" && len(env.Value) > 0 {
			return strings.Split(string(env.Value), ",")
		}
	}
	return nil
}

// PodDevices are the ids that the kubelet says each container has, by its pod resources API.
func (k *Kubelet) PodDevices(t testing.TB) map[string][]string {
	t.Helper()
	var list *podresources.ListPodResourcesResponse
	k.askPodResources(t, func(ctx context.Context, client podresources.PodResourcesListerClient) (err error) {
		list, err = client.List(ctx, &podresources.ListPodResourcesRequest{}, grpc.WaitForReady(true))
		return err
	})
	devices := map[string][]string{}
	for _, pod := range list.PodResources {
		for _, container := range pod.Containers {
			for _, of := range container.Devices {
				key := pod.Name + "/" + container.Name
				devices[key] = append(devices[key], of.DeviceIds...)
			}
		}
	}
	return devices
}

// Healthy is how many healthy devices of a resource the kubelet has, as it says itself: the node's
// status at the API server is up to a second older, and after a restart of the kubelet from its last
// life.
func (k *Kubelet) Healthy(t testing.TB, resource string) int {
	t.Helper()
	var list *podresources.AllocatableResourcesResponse
	k.askPodResources(t, func(ctx context.Context, client podresources.PodResourcesListerClient) (err error) {
		list, err = client.GetAllocatableResources(ctx, &podresources.AllocatableResourcesRequest{}, grpc.WaitForReady(true))
		return err
	})
	count := 0
	for _, of := range list.Devices {
		if of.ResourceName == resource {
			count += len(of.DeviceIds)
		}
	}
	return count
}

// WaitHealthy waits until the kubelet has so many.
func (k *Kubelet) WaitHealthy(t testing.TB, within time.Duration, resource string, want int) {
	t.Helper()
	Poll(t, within, "healthy devices of "+resource+" in the kubelet", func() error {
		if got := k.Healthy(t, resource); got != want {
			return fmt.Errorf("%d, want %d", got, want)
		}
		return nil
	})
}

func (k *Kubelet) askPodResources(t testing.TB, ask func(context.Context, podresources.PodResourcesListerClient) error) {
	t.Helper()
	conn, err := grpc.NewClient("unix://"+filepath.Join(k.Dir, "kubelet/pod-resources/kubelet.sock"),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(Context(t), 10*time.Second)
	defer cancel()
	if err := ask(ctx, podresources.NewPodResourcesListerClient(conn)); err != nil {
		t.Fatalf("pod resources: %v", err)
	}
}

// Failures collects the pods of a node that were ever Failed, also those that are gone since.
type Failures struct {
	mu     sync.Mutex
	failed map[string]string
	seen   map[string]bool
}

// WatchFailures begins to collect.
func (k *Kubelet) WatchFailures(t testing.TB) *Failures {
	t.Helper()
	f := &Failures{failed: map[string]string{}, seen: map[string]bool{}}
	ctx := Context(t)
	watcher, err := k.cp.Client.CoreV1().Pods("default").Watch(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + k.Node})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for event := range watcher.ResultChan() {
			pod, ok := event.Object.(*v1.Pod)
			if !ok || event.Type == watch.Bookmark {
				continue
			}
			f.mu.Lock()
			f.seen[string(pod.UID)] = true
			// A container that is told to end leaves a pod of its kind Failed too, without a reason.
			if pod.Status.Phase == v1.PodFailed && (pod.Status.Reason != "" || pod.DeletionTimestamp == nil) {
				f.failed[pod.Name] = pod.Status.Reason + ": " + pod.Status.Message
			}
			f.mu.Unlock()
		}
	}()
	t.Cleanup(watcher.Stop)
	return f
}

// Check names the pods that failed. seen is how many pods there were.
func (f *Failures) Check(t testing.TB) (seen int) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, why := range f.failed {
		t.Errorf("pod %s failed: %s", name, why)
	}
	return len(f.seen)
}
