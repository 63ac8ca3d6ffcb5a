// SPDX-License-Identifier: Apache-2.0

// Package cluster tests weft's programs against a real etcd, kube-apiserver and kubelet. Expected
// values are worked out from each test's input, never from weft's output; writes are counted from
// the API server's audit log.
package cluster

import (
	"os"
	"testing"

	"weft.dev/weft/tests/cluster/bed"
)

func TestMain(m *testing.M) { bed.Main(m) }

// isLong: make check-long asks for it.
var isLong = os.Getenv("WEFT_LONG") != ""

// long is by how much a test takes longer then.
func long(times int) int {
	if !isLong {
		return 1
	}
	return times
}
