// SPDX-License-Identifier: Apache-2.0

// Package cluster tests weft's programs against a real etcd, kube-apiserver and kubelet. Expected
// values are worked out from each test's input, never from weft's output; writes are counted from
// the API server's audit log.
package cluster

import (
	"testing"

	"weft.dev/weft/tests/cluster/bed"
)

func TestMain(m *testing.M) { bed.Main(m) }
