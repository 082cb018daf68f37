package lab

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"path/filepath"
	"sync/atomic"
	"time"
)

// balancer gives several replicas one address. It hands out requests in turn, where a Service hands out connections: over the
// one HTTP/2 connection that an API server keeps, all reviews would meet the same replica.
type balancer struct {
	address string
	server  *http.Server
	// transport is what replicas are reached by.
	transport *http.Transport
	replicas  atomic.Pointer[[]string]
	next      atomic.Uint64
}

// errNoReplica is what a Service without endpoints amounts to.
var errNoReplica = errors.New("no replica is running")

func newBalancer(certificates string, ca []byte) (*balancer, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, errors.New("the control plane's CA is no certificate")
	}
	serving, err := tls.LoadX509KeyPair(filepath.Join(certificates, "tls.crt"), filepath.Join(certificates, "tls.key"))
	if err != nil {
		return nil, fmt.Errorf("loading the balancer's certificate: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for the balancer: %w", err)
	}
	b := &balancer{address: listener.Addr().String(), transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, DialContext: dial, MaxIdleConnsPerHost: 64,
	}}
	b.use(nil)
	b.server = &http.Server{
		Handler: &httputil.ReverseProxy{
			Rewrite:   b.route,
			Transport: b.transport,
			// The API server is told what a Service without a working endpoint tells it: nothing.
			ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		},
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{serving}, MinVersion: tls.VersionTLS12},
		ReadHeaderTimeout: 10 * time.Second,
	}
	go func() {
		// Serving ends with the server's Close, and nothing needs to be told of it.
		_ = b.server.ServeTLS(listener, "", "")
	}()
	return b, nil
}

func dial(ctx context.Context, network, address string) (net.Conn, error) {
	if address == "none:443" {
		return nil, errNoReplica
	}
	return (&net.Dialer{}).DialContext(ctx, network, address)
}

func (b *balancer) route(request *httputil.ProxyRequest) {
	request.Out.URL.Scheme, request.Out.URL.Host = "https", "none:443"
	if replicas := *b.replicas.Load(); len(replicas) > 0 {
		request.Out.URL.Host = replicas[b.next.Add(1)%uint64(len(replicas))]
	}
}

// use makes the balancer hand requests to these addresses.
func (b *balancer) use(addresses []string) { b.replicas.Store(&addresses) }

func (b *balancer) close() error { return b.server.Close() }
