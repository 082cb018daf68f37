//go:build tools

// Package kubevirt keeps KubeVirt in go.mod: its servers are built from this module, with the versions that this module names.
package kubevirt

import (
	_ "kubevirt.io/kubevirt/cmd/virt-api"
	_ "kubevirt.io/kubevirt/cmd/virt-controller"
)
