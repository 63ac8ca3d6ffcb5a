// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package tools pins etcd. It is a module of its own, so that etcd's dependencies and those of
// Kubernetes do not have to agree on their versions.
package tools

import _ "go.etcd.io/etcd/server/v3"
