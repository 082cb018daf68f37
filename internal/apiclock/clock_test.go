package apiclock

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

var noon = time.Date(2026, 9, 12, 12, 0, 0, 0, time.UTC)

func TestClocksThatAgreeAreLeftAlone(t *testing.T) {
	c := &Clock{}
	// Whatever the fraction of the second in which the API server cuts its date off, and however long the answer takes.
	for after := time.Duration(0); after < 3*time.Second; after += 7 * time.Millisecond {
		asked := noon.Add(after)
		answered := asked.Add(40 * time.Millisecond)
		c.learn(asked, answered.Truncate(time.Second), answered)
		if c.Ahead() != 0 {
			t.Fatalf("%s after noon the clock is corrected by %s, want 0", after, c.Ahead())
		}
	}
}

func TestTheAPIServersClockCounts(t *testing.T) {
	for _, wrong := range []time.Duration{-3 * time.Hour, -2 * time.Minute, 90 * time.Second, 24 * time.Hour} {
		c := &Clock{}
		for i := range 20 {
			right := noon.Add(time.Duration(i) * 1300 * time.Millisecond)
			ours := right.Add(-wrong)
			c.learn(ours.Add(-30*time.Millisecond), right.Truncate(time.Second), ours)
		}
		if off := (c.Ahead() - wrong).Abs(); off > resolution {
			t.Errorf("a clock that is wrong by %s is corrected by %s", wrong, c.Ahead())
		}
	}
}

// A clock that stands still is right by the last answer.
func TestAClockThatStandsStillFollowsTheAnswers(t *testing.T) {
	c := &Clock{}
	for minutes := range 5 {
		right := noon.Add(time.Duration(minutes) * time.Minute)
		c.learn(noon, right, noon)
		if off := noon.Add(c.Ahead()).Sub(right).Abs(); off > resolution {
			t.Errorf("after %d minutes it is off by %s", minutes, off)
		}
	}
}

func TestAnAnswerWithoutADateTeachesNothing(t *testing.T) {
	for _, date := range []string{"", "yesterday", "0"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Date"] = []string{date}
		}))
		c := &Clock{}
		ask(t, c, server.URL)
		server.Close()
		if c.Ahead() != 0 {
			t.Errorf("date %q: the clock is corrected by %s", date, c.Ahead())
		}
	}
}

func TestNoTimeIsNegativeWhereTheClockIsSetBackInBetween(t *testing.T) {
	c := &Clock{}
	now := local()
	c.learn(now, now.Add(time.Hour), now)
	before := c.Now()
	c.learn(now, now.Add(-time.Hour), now)
	if since := c.Since(before); since != 0 {
		t.Errorf("%s have passed", since)
	}
}

func TestADateThatMayBeAGatewaysTeachesNothing(t *testing.T) {
	for _, status := range []int{http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Date", time.Unix(0, 0).UTC().Format(http.TimeFormat))
			w.WriteHeader(status)
		}))
		c := &Clock{}
		ask(t, c, server.URL)
		if err := c.Ask(t.Context(), &rest.Config{Host: server.URL}); err == nil {
			t.Errorf("status %d: the question for the time is answered", status)
		}
		server.Close()
		if c.Ahead() != 0 {
			t.Errorf("status %d: the clock is corrected by %s", status, c.Ahead())
		}
	}
}

func TestEveryAnswerSetsTheClockRight(t *testing.T) {
	const wrong = 2 * time.Hour
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(wrong).UTC().Format(http.TimeFormat))
		w.WriteHeader(http.StatusConflict)
	}))
	defer server.Close()
	c := &Clock{}
	if _, heard := c.Silence(); heard {
		t.Error("it has heard something before it asked")
	}
	ask(t, c, server.URL)
	if silence, heard := c.Silence(); !heard || silence > time.Hour {
		t.Errorf("after an answer the silence is %s, heard: %t", silence, heard)
	}
	if off := (c.Ahead() - wrong).Abs(); off > resolution {
		t.Errorf("the clock is corrected by %s, want %s", c.Ahead(), wrong)
	}
	before := c.Now()
	if since := c.Since(before); since < 0 || since > time.Hour {
		t.Errorf("%s have passed since this very moment", since)
	}
}

func TestTheServerIsAskedUnderWhateverFormOfItsAddressClientsTake(t *testing.T) {
	asked := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Method + " " + r.URL.Path
		w.Header().Set("Date", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
	}))
	defer server.Close()
	for host, want := range map[string]string{
		server.URL: "HEAD /version", server.URL + "/": "HEAD /version", server.URL + "/k8s/clusters/a": "HEAD /k8s/clusters/a/version",
		server.Listener.Addr().String(): "HEAD /version",
	} {
		config := &rest.Config{Host: host}
		c := Of(config)
		if err := c.Ask(t.Context(), config); err != nil {
			t.Errorf("%s: %v", host, err)
			continue
		}
		if got := <-asked; got != want || (c.Ahead()-time.Hour).Abs() > resolution {
			t.Errorf("%s: asked %s, want %s; corrected by %s", host, got, want, c.Ahead())
		}
	}
}

func ask(t *testing.T, c *Clock, url string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.Listen(http.DefaultTransport).RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}
}
