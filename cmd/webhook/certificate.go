package main

import (
	"crypto/tls"
	"net"
	"time"
)

// servedCertificateTimeout bounds what a scrape waits for the own listener.
const servedCertificateTimeout = 2 * time.Second

// servedCertificate tells until when the certificate is valid that whoever connects to the address is shown. It connects, since what
// lies in a file or a Secret need not be what is served.
func servedCertificate(address string) func() (notAfter time.Time, ok bool) {
	return func() (time.Time, bool) {
		dialer := &net.Dialer{Timeout: servedCertificateTimeout}
		connection, err := tls.DialWithDialer(dialer, "tcp", address, &tls.Config{
			InsecureSkipVerify: true, //nolint:gosec // what is shown is read, not trusted, and nothing is sent
		})
		if err != nil {
			return time.Time{}, false
		}
		shown := connection.ConnectionState().PeerCertificates
		// Nothing was sent that could get lost.
		_ = connection.Close()
		if len(shown) == 0 {
			return time.Time{}, false
		}
		return shown[0].NotAfter, true
	}
}
