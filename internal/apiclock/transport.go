package apiclock

import "net/http"

type transport struct {
	clock *Clock
	next  http.RoundTripper
}

// RoundTrip is http.RoundTripper's. An answer without a date, or with one that cannot be read, teaches nothing.
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	asked := local()
	response, err := t.next.RoundTrip(request)
	if err != nil {
		return response, err
	}
	t.clock.hear()
	if dated, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		t.clock.learn(asked, dated, local())
	}
	return response, nil
}

// WrappedRoundTripper lets client-go find what it wraps, such as to close idle connections.
func (t transport) WrappedRoundTripper() http.RoundTripper { return t.next }
