//go:build tools

// Package etcd keeps etcd's server in go.mod: it is built from this module, with the versions that this module names.
package etcd

import _ "go.etcd.io/etcd/server/v3"
