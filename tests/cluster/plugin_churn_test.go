// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"weft.dev/weft/tests/cluster/bed"
)

// Pods come and go on one node, 200 of them in a long run, three at a time, of one or two GPUs each, some with an init
// container; then a device fails and recovers. No pod fails, no device goes to two, and the plugin is
// as small at the end as after the first twenty.
func TestMatrixPodsComeAndGo(t *testing.T) {
	t.Parallel()
	podsToCome := 40
	if long(2) > 1 {
		podsToCome = 200
	}
	n, m := fileNode(t)
	used := onlyOnce(t, n.PodDevices(t))
	idle := 0 // a device that no pod that stays has
	for i, d := range m.Devices {
		if !used[d.ID] {
			idle = i
		}
	}
	run := func(number int) {
		pod := n.Pod(fmt.Sprint("one-of-many", number), bed.GPU, int64(number%2+1))
		pod.Spec.TerminationGracePeriodSeconds = seconds(1)
		if number%5 == 0 {
			first := bed.Container("first", bed.GPU, 1)
			first.Command = []string{"exit", "0", "20ms"}
			pod.Spec.InitContainers = []v1.Container{first}
		}
		n.Run(t, pod)
		n.Leave(t, pod.Name)
	}
	began := time.Now()
	numbers := make(chan int)
	var workers sync.WaitGroup
	for range 3 { // six of the six devices that are free
		workers.Add(1)
		go func() {
			defer workers.Done()
			for number := range numbers {
				run(number)
			}
		}()
	}
	for number := range podsToCome {
		numbers <- number
		if number == 20 {
			n.first = n.footprint()
		}
	}
	close(numbers)
	workers.Wait()
	for range injections() {
		m.write(t, machineFile(n.Kubelet), idle)
		n.plugin.Signal(syscall.SIGHUP)
		n.right(time.Now(), 7)
		m.write(t, machineFile(n.Kubelet))
		n.plugin.Signal(syscall.SIGHUP)
		n.right(time.Now(), 8)
	}
	n.come(6)
	n.untouched()
	t.Logf("%d pods came and went within %v", podsToCome, time.Since(began).Round(time.Second))
	n.judge(podsToCome)
}
