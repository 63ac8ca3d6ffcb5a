// SPDX-License-Identifier: Apache-2.0

package bed

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kubelet is a real kubelet of its own node, on a container runtime that records.
type Kubelet struct {
	Node      string
	Dir       string
	PluginDir string // the device plugin folder, as the world outside the kubelet's namespace sees it
	CRI       *CRI
	cp        *ControlPlane
	health    string // URL
	readOnly  string // URL of the read-only port
	process   *Process
}

var nodes atomic.Int32

// Setting changes a kubelet's folder before its first start.
type Setting func(t testing.TB, k *Kubelet)

// Config adds lines to the kubelet's configuration.
func Config(lines ...string) Setting {
	return func(t testing.TB, k *Kubelet) {
		path := filepath.Join(k.Dir, "config.yaml")
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		Write(t, path, string(text)+strings.Join(lines, "\n")+"\n")
	}
}

// NUMA has the kubelet see so many NUMA nodes of so many CPUs each, whatever the machine has.
func NUMA(nodes, cpus int) Setting {
	return func(t testing.TB, k *Kubelet) {
		put := func(path, text string) { Write(t, filepath.Join(k.Dir, path), text+"\n") }
		folder := func(path string) {
			if err := os.MkdirAll(filepath.Join(k.Dir, path), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		for n := range nodes {
			node := fmt.Sprintf("sysfs-node/node%d", n)
			var distances []string
			for other := range nodes {
				distances = append(distances, map[bool]string{true: "10", false: "20"}[other == n])
			}
			put(node+"/distance", strings.Join(distances, " "))
			put(node+"/meminfo", fmt.Sprintf("Node %d MemTotal: 67108864 kB\nNode %d MemFree: 67108864 kB", n, n))
			put(node+"/cpulist", fmt.Sprintf("%d-%d", n*cpus, (n+1)*cpus-1))
			folder(node + "/hugepages")
			for c := n * cpus; c < (n+1)*cpus; c++ {
				for _, topology := range []string{fmt.Sprintf("%s/cpu%d/topology", node, c), fmt.Sprintf("sysfs-cpu/cpu%d/topology", c)} {
					put(topology+"/core_id", fmt.Sprint(c))
					put(topology+"/physical_package_id", fmt.Sprint(n))
				}
				folder(fmt.Sprintf("sysfs-cpu/cpu%d/cache", c))
			}
		}
		for _, list := range []string{"online", "possible", "present"} {
			put("sysfs-cpu/"+list, fmt.Sprintf("0-%d", nodes*cpus-1))
		}
		put("sysfs-node/online", fmt.Sprintf("0-%d", nodes-1))
	}
}

// StartKubelet starts a kubelet, which registers a node with a new name, and waits until the node
// is Ready.
func StartKubelet(t testing.TB, cp *ControlPlane, settings ...Setting) *Kubelet {
	t.Helper()
	if why := os.Getenv("WEFT_NO_KUBELET"); why != "" {
		Skip(t, "%s", why)
	}
	k := &Kubelet{Node: fmt.Sprintf("kubelet-%d", nodes.Add(1)), Dir: Dir(t), cp: cp}
	k.PluginDir = filepath.Join(k.Dir, "kubelet/device-plugins")
	port, err := freePorts(2)
	if err != nil {
		t.Fatal(err)
	}
	k.health = fmt.Sprintf("http://127.0.0.1:%d/healthz", port[1])
	k.readOnly = fmt.Sprintf("http://127.0.0.1:%d", port[0])
	template, err := os.ReadFile(Repo("tests/cluster/testdata/kubelet.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	Write(t, filepath.Join(k.Dir, "config.yaml"), strings.NewReplacer("@DIR@", k.Dir, "@READ_ONLY_PORT@",
		fmt.Sprint(port[0]), "@HEALTH_PORT@", fmt.Sprint(port[1])).Replace(string(template)))
	cp.Kubeconfig(t, filepath.Join(k.Dir, "kubeconfig"), "system:node:"+k.Node, "system:nodes")
	for _, set := range settings {
		set(t, k)
	}
	k.CRI = startCRI(t, k.Dir)
	t.Cleanup(func() { k.forget(t) })
	k.Start(t)
	return k
}

// Start starts the kubelet (again) and waits until it is healthy and its node Ready.
func (k *Kubelet) Start(t testing.TB) {
	t.Helper()
	k.process = Start(t, Command{Name: "kubelet", Log: filepath.Join(k.Dir, "kubelet.log"),
		Argv: []string{Repo("tests/cluster/kubelet.sh"), k.Dir, k.Node, "--v=2"},
		Env:  []string{"KUBELET=" + os.Getenv("WEFT_KUBELET")}})
	client := http.Client{Timeout: time.Second}
	Poll(t, 20*time.Second, "kubelet healthy and node Ready", func() error {
		if err := k.process.Check(); err != nil {
			return err
		}
		resp, err := client.Get(k.health)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("healthz says %s", resp.Status)
		}
		node, err := k.cp.Client.CoreV1().Nodes().Get(Context(t), k.Node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range node.Status.Conditions {
			if c.Type == v1.NodeReady && c.Status == v1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("node %s is not Ready", k.Node)
	})
}

// Stop ends the kubelet; its node, its folder and what its runtime runs stay.
func (k *Kubelet) Stop(t testing.TB, sig syscall.Signal) {
	t.Helper()
	if _, err := k.process.End(sig, 10*time.Second); err != nil {
		t.Fatal(err)
	}
}

// Signal sends the kubelet a signal (SIGSTOP, SIGCONT).
func (k *Kubelet) Signal(sig syscall.Signal) { k.process.Signal(sig) }

// forget takes the node and its pods off the API server, which outlives the test.
func (k *Kubelet) forget(t testing.TB) {
	ctx, now := Context(t), metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	_ = k.cp.Client.CoreV1().Pods("default").DeleteCollection(ctx, now,
		metav1.ListOptions{FieldSelector: "spec.nodeName=" + k.Node})
	_ = k.cp.Client.CoreV1().Nodes().Delete(ctx, k.Node, now)
}

// Resource is what the node's status says of a resource.
type Resource struct{ Capacity, Allocatable int64 }

// Resource reads the node's status.
func (k *Kubelet) Resource(t testing.TB, name string) Resource {
	t.Helper()
	node, err := k.cp.Client.CoreV1().Nodes().Get(Context(t), k.Node, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	capacity, allocatable := node.Status.Capacity[v1.ResourceName(name)], node.Status.Allocatable[v1.ResourceName(name)]
	return Resource{Capacity: capacity.Value(), Allocatable: allocatable.Value()}
}

// WaitResource waits until the node's status says that.
func (k *Kubelet) WaitResource(t testing.TB, within time.Duration, name string, want Resource) {
	t.Helper()
	Poll(t, within, name+" of the node", func() error {
		if got := k.Resource(t, name); got != want {
			return fmt.Errorf("%+v, want %+v", got, want)
		}
		return nil
	})
}

// Pod is a pod of one container, bound to this node without a scheduler.
func (k *Kubelet) Pod(name string, resource string, count int64) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name + "-" + k.Node}}
	pod.Spec = v1.PodSpec{NodeName: k.Node, EnableServiceLinks: new(bool), TerminationGracePeriodSeconds: new(int64),
		RestartPolicy: v1.RestartPolicyAlways, AutomountServiceAccountToken: new(bool),
		Tolerations: []v1.Toleration{{Operator: v1.TolerationOpExists}}}
	pod.Spec.Containers = []v1.Container{Container("main", resource, count)}
	return pod
}

// Container asks for count of resource, or for nothing where count is 0.
func Container(name, resource string, count int64) v1.Container {
	c := v1.Container{Name: name, Image: "example.test/workload:1", ImagePullPolicy: v1.PullIfNotPresent}
	if count > 0 {
		c.Resources.Limits = v1.ResourceList{v1.ResourceName(resource): quantity(count)}
	}
	return c
}

// Create makes the pod at the API server.
func (k *Kubelet) Create(t testing.TB, pod *v1.Pod) *v1.Pod {
	t.Helper()
	made, err := k.cp.Client.CoreV1().Pods("default").Create(Context(t), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// Run makes the pod and waits until it is Running; returns it as it is then.
func (k *Kubelet) Run(t testing.TB, pod *v1.Pod) *v1.Pod {
	t.Helper()
	k.Create(t, pod)
	var now *v1.Pod
	Poll(t, 10*time.Second, "pod "+pod.Name+" Running", func() error {
		now = k.Get(t, pod.Name)
		if now.Status.Phase == v1.PodRunning {
			return nil
		}
		if now.Status.Phase == v1.PodFailed {
			t.Fatalf("pod %s Failed: %s: %s", pod.Name, now.Status.Reason, now.Status.Message)
		}
		return fmt.Errorf("phase %s", now.Status.Phase)
	})
	return now
}

// Get reads a pod.
func (k *Kubelet) Get(t testing.TB, name string) *v1.Pod {
	t.Helper()
	pod, err := k.cp.Client.CoreV1().Pods("default").Get(Context(t), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

// Delete deletes a pod and waits until its containers have ended, and with them its claim.
func (k *Kubelet) Delete(t testing.TB, name string) {
	t.Helper()
	err := k.cp.Client.CoreV1().Pods("default").Delete(Context(t), name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
	if err != nil {
		t.Fatal(err)
	}
	Poll(t, 10*time.Second, "containers of "+name+" gone", func() error {
		for _, c := range k.CRI.Containers(t) {
			if c.Pod == name && c.State == "CONTAINER_RUNNING" {
				return fmt.Errorf("container %s still runs", c.Container)
			}
		}
		return nil
	})
}

// Leave deletes a pod as its owner would, with the grace that it asks for, and waits until the
// kubelet has let it go: its devices are free then.
func (k *Kubelet) Leave(t testing.TB, name string) {
	t.Helper()
	if err := k.cp.Client.CoreV1().Pods("default").Delete(Context(t), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	Poll(t, 20*time.Second, name+" gone", func() error {
		_, err := k.cp.Client.CoreV1().Pods("default").Get(Context(t), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is still there (%v)", err)
	})
}

// Pods lists the node's pods.
func (k *Kubelet) Pods(t testing.TB) []v1.Pod {
	t.Helper()
	list, err := k.cp.Client.CoreV1().Pods("default").List(Context(t), metav1.ListOptions{FieldSelector: "spec.nodeName=" + k.Node})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// Registrations is how often this life of the kubelet has seen the resource registered.
func (k *Kubelet) Registrations(t testing.TB, resource string) int {
	t.Helper()
	resp, err := http.Get(k.readOnly + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	metric := regexp.MustCompile(`(?m)^kubelet_device_plugin_registration_total\{resource_name="` + regexp.QuoteMeta(resource) + `"\} ([0-9]+)`)
	if found := metric.FindSubmatch(text); found != nil {
		count, _ = strconv.Atoi(string(found[1]))
	}
	return count
}
