package node

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// networkPlugins is where distributions put the basic network plugins.
var networkPlugins = []string{"/usr/lib/cni", "/opt/cni/bin"}

// probeAddress is nobody's: an address of a node that runs must not be taken away.
const probeAddress = "10.97.0.255"

// Unavailable says why this machine cannot run a kubelet; nil where it can. A test that needs one skips with it, and so says
// what it did not show.
func Unavailable() error {
	if runtime.GOOS != "linux" {
		return errors.New("a kubelet runs on Linux only")
	}
	if os.Geteuid() != 0 {
		return errors.New("a kubelet has to run as root")
	}
	for _, program := range []string{"containerd", "containerd-shim-runc-v2", "ctr", "ip", "nsenter", "runc", "unshare"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("a kubelet needs %s; test/node/ensure.sh installs it: %w", program, err)
		}
	}
	if _, err := networkPluginDirectory(); err != nil {
		return err
	}
	if output, err := exec.Command("unshare", "--mount", "--pid", "--fork", "--mount-proc", "mount", "-t", "tmpfs", "tmpfs", "/run").CombinedOutput(); err != nil {
		return fmt.Errorf("no mount and process namespaces may be made here: %w: %s", err, output)
	}
	for _, verb := range []string{"replace", "delete"} {
		if output, err := exec.Command("ip", "address", verb, probeAddress+"/32", "dev", "lo").CombinedOutput(); err != nil {
			return fmt.Errorf("no addresses may be given to the loopback interface: %w: %s", err, output)
		}
	}
	return nil
}

func networkPluginDirectory() (string, error) {
	for _, directory := range networkPlugins {
		if _, err := os.Stat(filepath.Join(directory, "ptp")); err == nil {
			return directory, nil
		}
	}
	return "", errors.New("a kubelet needs the basic network plugins; test/node/ensure.sh installs them")
}
