package controlplane

import (
	"context"
	"errors"
	"strings"

	"github.com/ttlab/vmwarden/test/process"
)

// etcdAddress is a Unix socket in the working directory of etcd and kube-apiserver: in our own directory no other etcd can be met,
// and nobody else can write to ours. It is relative because a socket's path is limited to some hundred bytes, of which a long
// $TMPDIR would leave too few.
const etcdAddress = "unix://etcd.sock"

func (c *ControlPlane) startEtcd(ctx context.Context, path string) error {
	// The only member still has to advertise itself with a host and a port, where nobody will call and nothing listens.
	const advertised = "http://localhost:1"
	c.etcd = &component{
		spec: process.Spec{
			Name: "etcd",
			Path: path,
			Args: []string{
				"--name=test",
				"--data-dir=" + c.path("etcd"),
				"--listen-client-urls=" + etcdAddress,
				"--listen-peer-urls=unix://etcd-peer.sock",
				"--advertise-client-urls=" + advertised,
				"--initial-advertise-peer-urls=" + advertised,
				"--initial-cluster=test=" + advertised,
				// Alone it wins every election, so it need not wait a second for other candidates.
				"--heartbeat-interval=20",
				"--election-timeout=200",
				// The data need not survive a power cut, only the process.
				"--unsafe-no-fsync",
			},
			WorkingDirectory: c.Dir(),
		},
		ready: c.etcdReady,
	}
	return c.etcd.run(ctx, c.group)
}

// etcdReady takes etcd's own word for it: from outside its working directory its socket may be out of reach.
func (c *ControlPlane) etcdReady(context.Context) error {
	if !strings.Contains(c.etcd.process.LogTail(100), "ready to serve client requests") {
		return errors.New("it has not said that it serves clients")
	}
	return nil
}
