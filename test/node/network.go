package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
)

// Addresses of the node's own, all on the loopback interface or behind it. They are no loopback addresses: the kubelet takes none
// for itself, and Kubernetes none for the endpoint of a Service.
const (
	// nodeAddress is the node's, and so that of Pods with the host's network.
	nodeAddress = "10.97.0.1"
	// serviceAddress is the API server's inside the cluster, as every Pod is told.
	serviceAddress = "10.96.0.1"
	podRange       = "10.98.0.0/24"

	forwardingSwitch = "/proc/sys/net/ipv4/ip_forward"
)

// network is what of the machine's network belongs to the node.
type network struct {
	listener net.Listener
	// forwarding is what the switch said before the network plugin turned it on.
	forwarding []byte
}

// openNetwork gives the loopback interface the node's addresses, and stands where kube-proxy would: what arrives at the Service
// kubernetes goes on to the API server. Other Services have no address that leads anywhere; the API server itself finds their
// endpoints with --enable-aggregator-routing.
func openNetwork(ctx context.Context, apiServer string) (*network, error) {
	forwarding, err := os.ReadFile(forwardingSwitch)
	if err != nil {
		return nil, fmt.Errorf("reading whether the machine forwards: %w", err)
	}
	n := &network{forwarding: forwarding}
	for _, address := range []string{nodeAddress, serviceAddress} {
		if err := ip("address", "replace", address+"/32", "dev", "lo"); err != nil {
			return nil, errors.Join(err, n.close())
		}
	}
	if n.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(serviceAddress, "443")); err != nil {
		return nil, errors.Join(fmt.Errorf("listening for the Service kubernetes: %w", err), n.close())
	}
	// The context bounds the start alone.
	go n.accept(context.WithoutCancel(ctx), strings.TrimPrefix(apiServer, "https://"))
	return n, nil
}

func (n *network) accept(ctx context.Context, target string) {
	for {
		client, err := n.listener.Accept()
		if err != nil {
			return
		}
		go forward(ctx, client, target)
	}
}

func forward(ctx context.Context, client net.Conn, target string) {
	server, err := (&net.Dialer{}).DialContext(ctx, "tcp", target)
	if err != nil {
		_ = client.Close() // The client sees a closed connection, as it would see the API server's.
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		pipe(server, client)
	}()
	pipe(client, server)
	<-done
}

// pipe passes on what comes until either side ends, and then ends the other.
func pipe(to, from net.Conn) {
	// Whoever still reads or writes meets the end of both.
	_, _ = io.Copy(to, from)
	_, _ = to.Close(), from.Close()
}

func (n *network) close() error {
	var problems []error
	if n.listener != nil {
		problems = append(problems, n.listener.Close())
	}
	for _, address := range []string{nodeAddress, serviceAddress} {
		// One that was never given cannot be taken, and one that stays leads nowhere.
		_ = ip("address", "delete", address+"/32", "dev", "lo")
	}
	return errors.Join(append(problems, os.WriteFile(forwardingSwitch, n.forwarding, 0o644))...)
}

func ip(arguments ...string) error {
	if output, err := exec.Command("ip", arguments...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(arguments, " "), err, strings.TrimSpace(string(output)))
	}
	return nil
}
