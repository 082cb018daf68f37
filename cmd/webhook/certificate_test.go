package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestTheServedCertificateIsTheOneThatIsShown(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	ask := servedCertificate(t.Context(), server.Listener.Addr().String())
	notAfter, known := ask()
	if want := server.Certificate().NotAfter; !known || !notAfter.Equal(want) {
		t.Errorf("%s (known: %t), want %s", notAfter, known, want)
	}
	server.Close()
	if _, known := ask(); known {
		t.Error("a certificate is told where nobody listens")
	}
}
