package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// turnstile is a webhook of the test's own that holds a deletion up until the test opens it.
type turnstile struct {
	// arrived is closed when the first deletion that is meant in earnest is there.
	arrived chan struct{}
	opened  chan struct{}
	once    sync.Once
	arrival sync.Once
}

func (s *turnstile) open() { s.once.Do(func() { close(s.opened) }) }

// obstructWithTurnstile puts one before the deletion of this virtual machine. Dry runs pass.
func obstructWithTurnstile(t *testing.T, name string) *turnstile {
	t.Helper()
	s := &turnstile{arrived: make(chan struct{}), opened: make(chan struct{})}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	certificates := t.TempDir()
	if err := shared.ControlPlane.ServingCertificate(certificates, "127.0.0.1"); err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	go func() {
		// Serving ends with the server's Close, and nothing needs to be told of it.
		_ = server.ServeTLS(listener, filepath.Join(certificates, "tls.crt"), filepath.Join(certificates, "tls.key"))
	}()
	t.Cleanup(func() {
		s.open()
		_ = server.Close()
	})
	registerObstacle(t, listener.Addr().String(), name)
	t.Cleanup(func() { unobstruct(t) })
	// It stands when a dry run has been asked about.
	await(t, "the turnstile is asked", func(ctx context.Context) error {
		if err := shared.DryDelete(ctx, name); err == nil || !strings.Contains(err.Error(), "not in earnest") {
			return fmt.Errorf("not the turnstile's answer: %w", err)
		}
		return nil
	})
	return s
}

func (s *turnstile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	response := &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	if review.Request.DryRun != nil && *review.Request.DryRun {
		response.Allowed, response.Result = false, &metav1.Status{Message: "not in earnest"}
	} else {
		s.arrival.Do(func() { close(s.arrived) })
		<-s.opened
	}
	review.Response = response
	// The API server is gone, or has its answer.
	_ = json.NewEncoder(w).Encode(review)
}
