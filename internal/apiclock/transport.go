package apiclock

import (
	"net/http"
	"slices"
)

type transport struct {
	clock *Clock
	next  http.RoundTripper
}

// gateways are the answers of what stands between us and an API server that it does not reach. The date in them is its own.
var gateways = []int{http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}

// RoundTrip is http.RoundTripper's. An answer without a date, or with one that cannot be read, teaches nothing; nor does one that may be
// another's than the API server's.
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	asked := local()
	response, err := t.next.RoundTrip(request)
	if err != nil {
		return response, err
	}
	t.clock.hear()
	if slices.Contains(gateways, response.StatusCode) {
		return response, nil
	}
	if dated, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		t.clock.learn(asked, dated, local())
	}
	return response, nil
}

// WrappedRoundTripper lets client-go find what it wraps, such as to close idle connections.
func (t transport) WrappedRoundTripper() http.RoundTripper { return t.next }
