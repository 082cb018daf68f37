package main

import (
	"context"
	"crypto/tls"
	"time"
)

// servedCertificateTimeout bounds what a scrape waits for the own listener.
const servedCertificateTimeout = 2 * time.Second

// servedCertificate tells until when the certificate is valid that whoever connects to the address is shown. It connects, since what
// lies in a file or a Secret need not be what is served.
func servedCertificate(ctx context.Context, address string) func() (notAfter time.Time, ok bool) {
	dialer := &tls.Dialer{Config: &tls.Config{
		InsecureSkipVerify: true, //nolint:gosec // what is shown is read, not trusted, and nothing is sent
	}}
	return func() (time.Time, bool) {
		ctx, cancel := context.WithTimeout(ctx, servedCertificateTimeout)
		defer cancel()
		connection, err := dialer.DialContext(ctx, "tcp", address)
		if err != nil {
			return time.Time{}, false
		}
		// Nothing was sent that could get lost.
		defer func() { _ = connection.Close() }()
		secured, ok := connection.(*tls.Conn)
		if !ok || len(secured.ConnectionState().PeerCertificates) == 0 {
			return time.Time{}, false
		}
		return secured.ConnectionState().PeerCertificates[0].NotAfter, true
	}
}
