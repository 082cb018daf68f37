package process

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are taken from below the range from which systems choose the source ports of outgoing connections. From within it, a
// client that keeps dialling a stopped server can be given the server's very port as its own source (a TCP self-connect), and
// the restarted server finds its port taken.
const (
	lowestPort  = 15000
	highestPort = 29999
)

// FreePort is a TCP port on which nobody listens on 127.0.0.1. Somebody else may take it before the caller does: see PortTaken.
func FreePort() (int, error) {
	var err error
	for range 100 {
		port := lowestPort + rand.IntN(highestPort-lowestPort+1)
		var listener net.Listener
		if listener, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err != nil {
			continue
		}
		if err = listener.Close(); err == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("finding a free port on 127.0.0.1: %w", err)
}
