package cli

import (
	"fmt"

	"github.com/ttlab/vmwarden/internal/version"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// ClusterConfig finds the API server: the kubeconfig if one is named or in KUBECONFIG, else the Pod's own ServiceAccount. It
// connects to nothing.
func ClusterConfig(kubeconfig, component string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the API server (name a file with --kubeconfig, or run in a Pod): %w", err)
	}
	config.UserAgent = "vmwarden-" + component + "/" + version.String()
	// The API server's own priority and fairness bounds us; a second limit in the client would only make reviews time out.
	config.QPS = -1
	return config, nil
}
