// Package node adds a real node to a test's control plane: containerd and the kubelet, so that Pods really run, on this machine.
//
// Start it beside a control plane, build images from static binaries, and use Pods, Deployments and Jobs as in any cluster:
//
//	if err := node.Unavailable(); err != nil { t.Skip(err) }
//	plane, err := controlplane.Start(ctx, controlplane.Options{Scheduler: true, Controllers: []string{"deployment-controller", …},
//		APIServerFlags: []string{"--enable-aggregator-routing=true"}})
//	worker, err := node.Start(ctx, plane, node.Options{Images: []node.Image{{Name: "registry.lab.internal/webhook:1", Binary: path}}})
//
// Pods have a network of their own and reach the API server by its Service, with their projected tokens; the API server reaches
// Pods, and with --enable-aggregator-routing the Pods behind a Service that a webhook configuration names. There is no DNS, and
// no kube-proxy: no other Service leads anywhere.
//
// It needs root, and a machine has one such node at a time. Everything runs in a process and a mount namespace of the node's own:
// when that ends, whatever ended it, the kernel ends every container and every mount with it. After a kill of the program that
// started it, two addresses of the loopback interface and empty cgroups stay until the next node takes them over.
package node

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"text/template"
	"time"

	"github.com/ttlab/vmwarden/test/binaries"
	"github.com/ttlab/vmwarden/test/controlplane"
	"github.com/ttlab/vmwarden/test/process"
)

// Name is the node's.
const Name = "lab-node"

const (
	pauseImage = "registry.lab.internal/test/pause:1"

	// startTimeout is long: on a machine that compiles at the same time everything takes many times its usual seconds.
	startTimeout = 3 * time.Minute
	// stopGrace is how long containerd may take to end.
	stopGrace = 10 * time.Second
)

var (
	//go:embed containerd.toml
	containerdConfiguration string
	//go:embed kubelet.yaml
	kubeletConfiguration string
	//go:embed network.json
	networkConfiguration string
	//go:embed init.sh
	initScript []byte
)

// Options change what Start starts.
type Options struct {
	// Progress is told what is being built; nil: nothing is said.
	Progress io.Writer
	// Images are there when the node is ready.
	Images []Image
	// Labels are the node's, besides the kubelet's own.
	Labels map[string]string
}

// Node is a running node.
type Node struct {
	plane      *controlplane.ControlPlane
	group      *process.Group
	lock       *os.File
	network    *network
	containerd *process.Process
	kubelet    *process.Process
	arguments  []string
	// box is the path of the program that plays others in images.
	box string
}

// Start adds a node to the control plane, and returns when it is ready. The context bounds the start alone. Stop it before the
// control plane.
func Start(ctx context.Context, plane *controlplane.ControlPlane, options Options) (*Node, error) {
	if err := Unavailable(); err != nil {
		return nil, err
	}
	if options.Progress == nil {
		options.Progress = io.Discard
	}
	programs, err := binaries.LocateNode(ctx, options.Progress)
	if err != nil {
		return nil, err
	}
	lock, err := acquireLock(ctx)
	if err != nil {
		return nil, err
	}
	group, err := process.NewGroup("", "vmwarden-node")
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	n := &Node{plane: plane, group: group, lock: lock}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("%s passed", startTimeout))
	defer cancel()
	if err := n.start(ctx, programs.Kubelet, options); err != nil {
		return nil, errors.Join(fmt.Errorf("starting a node: %w", err), n.Stop())
	}
	return n, nil
}

func (n *Node) start(ctx context.Context, kubelet string, options Options) error {
	if err := removeCgroups(); err != nil {
		return err
	}
	var err error
	if n.network, err = openNetwork(ctx, n.plane.AdminConfig().Host); err != nil {
		return err
	}
	if n.box, err = n.buildBox(ctx); err != nil {
		return err
	}
	if err := n.writeConfiguration(); err != nil {
		return err
	}
	if err := n.startContainerd(ctx); err != nil {
		return err
	}
	if err := n.Import(ctx, append([]Image{{Name: pauseImage, Binary: n.box}}, options.Images...)...); err != nil {
		return err
	}
	return n.startKubelet(ctx, kubelet, options.Labels)
}

// Dir is the directory that holds everything the node writes, logs included. It goes with Stop.
func (n *Node) Dir() string { return n.group.Directory() }

// Box is the path of a static program for images: called cp it copies, and under every other name it waits for SIGTERM.
func (n *Node) Box() string { return n.box }

func (n *Node) path(name string) string { return filepath.Join(n.Dir(), name) }

// socket is named by its full path in a directory that is short enough: a socket's path is limited to some hundred bytes.
func (n *Node) socket() string { return n.path("containerd.sock") }

func (n *Node) buildBox(ctx context.Context) (string, error) {
	path := n.path("box")
	command := exec.CommandContext(ctx, "go", "build", "-o", path, "github.com/ttlab/vmwarden/test/node/box")
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the program of the images: %w\n%s", err, bytes.TrimSpace(output))
	}
	return path, nil
}

// writeConfiguration fills in the configuration files of containerd, the kubelet and the network plugin.
func (n *Node) writeConfiguration() error {
	plugins, err := networkPluginDirectory()
	if err != nil {
		return err
	}
	port, err := process.FreePort()
	if err != nil {
		return err
	}
	values := map[string]any{
		"Directory": n.Dir(), "Socket": n.socket(), "PauseImage": pauseImage, "NetworkPlugins": plugins, "PodRange": podRange,
		"Address": nodeAddress, "Port": port,
	}
	if err := os.Mkdir(n.path("cni"), 0o700); err != nil {
		return err
	}
	for name, text := range map[string]string{
		"containerd.toml": containerdConfiguration, "kubelet.yaml": kubeletConfiguration, "cni/lab.conflist": networkConfiguration,
	} {
		parsed, err := template.New(name).Option("missingkey=error").Parse(text)
		if err != nil {
			return err
		}
		var filled bytes.Buffer
		if err := parsed.Execute(&filled, values); err != nil {
			return err
		}
		if err := os.WriteFile(n.path(name), filled.Bytes(), 0o600); err != nil {
			return err
		}
	}
	return os.WriteFile(n.path("init.sh"), initScript, 0o600)
}

func (n *Node) startContainerd(ctx context.Context) error {
	var err error
	n.containerd, err = n.group.Start(ctx, process.Spec{
		Name: "containerd",
		Path: "unshare",
		Args: []string{"--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", n.path("init.sh"), "containerd", "--config", n.path("containerd.toml")},
	})
	if err != nil {
		return err
	}
	return n.containerd.AwaitReady(ctx, func(ctx context.Context) error {
		output, err := n.ctr(ctx, "version")
		if err != nil {
			return fmt.Errorf("%w: %s", err, output)
		}
		return nil
	})
}

// Stop ends the node and all its Pods' processes, and leaves nothing behind on the machine. The objects stay in the API server.
func (n *Node) Stop() error {
	var problems []error
	if n.kubelet != nil {
		problems = append(problems, n.kubelet.Stop(stopGrace))
	}
	problems = append(problems, n.group.Close())
	if n.network != nil {
		problems = append(problems, n.network.close())
	}
	return errors.Join(append(problems, removeCgroups(), n.lock.Close())...)
}
