package policy

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// A create may name thousands of owners, and whoever sends it is not to send as many requests through us at once.
func TestOnlySoManyReferencesAreLookedUpAtTheSameTime(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var arrived atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		if arrived.Add(1) == maxLookups {
			cancel()
		}
		<-request.Context().Done()
	}))
	defer server.Close()
	client, err := metadata.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	var wanted []Reference
	for i := range 50 * maxLookups {
		wanted = append(wanted, Reference{VirtualMachine, fmt.Sprintf("lab-%d", i)})
	}
	if _, err := (&MetadataSurroundings{Client: client, Contract: testContract()}).Referents(ctx, "lab-vms", wanted); err == nil {
		t.Error("no answer is no error")
	}
	if got := arrived.Load(); got != maxLookups {
		t.Errorf("%d were looked up at the same time, want %d", got, maxLookups)
	}
}
