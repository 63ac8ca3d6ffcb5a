// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package tools pins the programs that hack/cluster-test builds out of this module, so that
// go.mod keeps what they need.
package tools

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kubelet"
)
