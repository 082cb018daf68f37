package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/ttlab/vmwarden/internal/reap"
)

// faulty stands between a pass and the API server and spoils some of what they say to each other. What it leaves alone is the
// API server's own answer.
type faulty struct {
	next  http.RoundTripper
	spoil func(*http.Request) (*http.Response, error)
}

func (f faulty) RoundTrip(request *http.Request) (*http.Response, error) {
	if response, err := f.spoil(request); response != nil || err != nil {
		return response, err
	}
	return f.next.RoundTrip(request)
}

// spoiled is a pass whose requests to the API server go through spoil.
func spoiled(t *testing.T, spoil func(*http.Request) (*http.Response, error)) *reap.Pass {
	t.Helper()
	p := pass(t, "prod")
	account, err := shared.ReaperConfig(t.Context(), "prod")
	if err != nil {
		t.Fatal(err)
	}
	account = rest.CopyConfig(account)
	account.Wrap(func(next http.RoundTripper) http.RoundTripper { return faulty{next: next, spoil: spoil} })
	client, err := metadata.NewForConfig(account)
	if err != nil {
		t.Fatal(err)
	}
	p.Cluster = &reap.Cluster{Client: client, Contract: p.Contract}
	return p
}

func lists(request *http.Request, resource string) bool {
	return request.Method == http.MethodGet && strings.HasSuffix(request.URL.Path, "/"+resource)
}

func answer(request *http.Request, status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: request,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
	}
}

// shortPages makes every list come in pages of one, by the API server itself.
func shortPages(request *http.Request) {
	query := request.URL.Query()
	if query.Has("limit") {
		query.Set("limit", "1")
		request.URL.RawQuery = query.Encode()
	}
}

func TestAListThatIsNotWholeMakesNoOrphanAndNoGhost(t *testing.T) {
	clean(t)
	// Without the fault there is one of each.
	for i := range 2 {
		open(t, "prod", sessionID('h', 10+i))
	}
	insert(t, "prod", expired(sessionID('h', 20)), running(sessionID('h', 21)))
	const expiredContinue = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"The provided continue parameter is too old","reason":"Expired","code":410}`
	for name, spoil := range map[string]func(resource string, request *http.Request) (*http.Response, error){
		"its second page answers 410": func(resource string, request *http.Request) (*http.Response, error) {
			shortPages(request)
			if lists(request, resource) && request.URL.Query().Has("continue") {
				return answer(request, http.StatusGone, expiredContinue), nil
			}
			return nil, nil
		},
		"its second page does not come": func(resource string, request *http.Request) (*http.Response, error) {
			shortPages(request)
			if lists(request, resource) && request.URL.Query().Has("continue") {
				return nil, io.ErrUnexpectedEOF
			}
			return nil, nil
		},
		// In the words of an API server from which a CustomResourceDefinition was taken away.
		"its resource is not served": func(resource string, request *http.Request) (*http.Response, error) {
			if lists(request, resource) {
				return answer(request, http.StatusNotFound, "404 page not found\n"), nil
			}
			return nil, nil
		},
		"it times out": func(resource string, request *http.Request) (*http.Response, error) {
			if lists(request, resource) {
				<-request.Context().Done()
				return nil, request.Context().Err()
			}
			return nil, nil
		},
		"it is cut off": func(resource string, request *http.Request) (*http.Response, error) {
			if lists(request, resource) {
				return answer(request, http.StatusOK, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7"},"items":[{"met`), nil
			}
			return nil, nil
		},
		"it is empty in a way that no API server writes": func(resource string, request *http.Request) (*http.Response, error) {
			if lists(request, resource) {
				return answer(request, http.StatusOK, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{},"items":[]}`), nil
			}
			return nil, nil
		},
	} {
		for _, resource := range []string{"virtualmachines", "secrets"} {
			t.Run(fmt.Sprintf("%s, %s", resource, name), func(t *testing.T) {
				p := spoiled(t, func(request *http.Request) (*http.Response, error) { return spoil(resource, request) })
				p.Settings.ItemTimeout = time.Second
				p.Settings.OrphanMinimumAge = 0
				made := p.Plan(t.Context())
				if len(made.Of(reap.Orphan)) > 0 || len(made.Of(reap.Ghost)) > 0 || len(made.Of(reap.Expired)) > 0 {
					t.Errorf("planned on a list that is not whole: %+v", made.Actions)
				}
				held := map[reap.Direction]reap.HoldCause{}
				for _, hold := range made.Holds {
					held[hold.Direction] = hold.Cause
				}
				if held[reap.Orphan] != reap.Aborted || held[reap.Ghost] != reap.Aborted {
					t.Errorf("holds = %v, want orphan and ghost aborted", held)
				}
			})
		}
	}
}

func TestAListOfManyPagesIsRead(t *testing.T) {
	clean(t)
	for i := range 3 {
		open(t, "prod", sessionID('h', i))
	}
	p := spoiled(t, func(request *http.Request) (*http.Response, error) {
		shortPages(request)
		return nil, nil
	})
	p.Settings.OrphanMinimumAge, p.Settings.Released = 0, reap.BrakeNames()
	if made := p.Plan(t.Context()); len(made.Of(reap.Orphan)) != 6 {
		t.Errorf("%d orphans, want 3 machines and 3 Secrets", len(made.Of(reap.Orphan)))
	}
}
