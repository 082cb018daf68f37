package cli

import (
	"errors"
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
	switch {
	case clientcmd.IsEmptyConfig(err) && kubeconfig != "":
		return nil, fmt.Errorf("--kubeconfig %s: names no API server", kubeconfig)
	case kubeconfig != "" && err != nil:
		return nil, FileError("--kubeconfig "+kubeconfig, err)
	case clientcmd.IsEmptyConfig(err):
		// The library's own words name a variable that it no longer reads.
		return nil, errors.New("no API server is named: name a kubeconfig file by --kubeconfig or KUBECONFIG, or run in a Pod")
	case err != nil:
		return nil, fmt.Errorf("finding the API server: %w", err)
	}
	config.UserAgent = "vmwarden-" + component + "/" + version.String()
	// The API server's own priority and fairness bounds us; a second limit in the client would only make reviews time out.
	config.QPS = -1
	return config, nil
}
