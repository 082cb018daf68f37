package apiclock

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"k8s.io/client-go/rest"
)

// Ask sets the clock right before the first thing that hangs on it. Any answer of the API server will do, a refusal too; none at all, and
// one that may be a gateway's, is an error.
func (c *Clock) Ask(ctx context.Context, config *rest.Config) error {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("making a client to ask the API server for the time: %w", err)
	}
	// The host may stand without a scheme, as all other clients take it.
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return fmt.Errorf("asking the API server for the time: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, server.JoinPath("version").String(), nil)
	if err != nil {
		return fmt.Errorf("asking the API server for the time: %w", err)
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("asking the API server for the time: %w", err)
	}
	if err := response.Body.Close(); err != nil {
		return fmt.Errorf("asking the API server for the time: %w", err)
	}
	if slices.Contains(gateways, response.StatusCode) {
		return fmt.Errorf("asking the API server for the time: the answer is %s", response.Status)
	}
	return nil
}
