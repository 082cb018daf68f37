package status

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// dataKey holds the Status as JSON.
const dataKey = "status.json"

// maxTries is how often a pass is entered again when somebody else wrote in between.
const maxTries = 5

// ConfigMapName names an environment's status ConfigMap, in the VM namespace.
func ConfigMapName(environment string) string { return "vmwarden-status-" + environment }

// Store is an environment's status ConfigMap.
type Store struct {
	ConfigMaps  corev1client.ConfigMapInterface
	Environment string
}

// Read gives the status. A ConfigMap that is missing or holds none yet is no error: then no pass ever ran, and the status has
// none.
func (s Store) Read(ctx context.Context) (Status, error) {
	found, err := s.ConfigMaps.Get(ctx, ConfigMapName(s.Environment), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return s.parse("")
	}
	if err != nil {
		return Status{}, fmt.Errorf("reading the status: %w", err)
	}
	return s.parse(found.Data[dataKey])
}

func (s Store) parse(content string) (Status, error) {
	status := Status{Schema: Schema, Environment: s.Environment}
	if content == "" {
		return status, nil
	}
	if err := json.Unmarshal([]byte(content), &status); err != nil {
		return Status{}, fmt.Errorf("reading the status in ConfigMap %s: %w", ConfigMapName(s.Environment), err)
	}
	if status.Schema != Schema {
		return Status{}, fmt.Errorf("reading the status in ConfigMap %s: its schema is %q, not %s", ConfigMapName(s.Environment), status.Schema, Schema)
	}
	return status, nil
}

// Record enters a pass. It gives back the reference of the ConfigMap, for Events about what has no object of its own. The
// installation makes the ConfigMap, so that a reaper needs no right to make any; where it is missing, making it is tried.
func (s Store) Record(ctx context.Context, pass Pass) (corev1.ObjectReference, error) {
	// Not client-go's retry: it takes the end of the context for success.
	for try := 1; ; try++ {
		stored, err := s.write(ctx, pass)
		if apierrors.IsConflict(err) && try < maxTries {
			continue
		}
		if err != nil {
			return corev1.ObjectReference{}, fmt.Errorf("writing the status ConfigMap %s: %w", ConfigMapName(s.Environment), err)
		}
		return corev1.ObjectReference{
			APIVersion: "v1", Kind: "ConfigMap", Namespace: stored.Namespace, Name: stored.Name, UID: stored.UID,
		}, nil
	}
}

// write reads the ConfigMap, enters the pass and writes it back, unless somebody else did meanwhile.
func (s Store) write(ctx context.Context, pass Pass) (*corev1.ConfigMap, error) {
	current, err := s.ConfigMaps.Get(ctx, ConfigMapName(s.Environment), metav1.GetOptions{})
	missing := apierrors.IsNotFound(err)
	if missing {
		current = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: ConfigMapName(s.Environment)}}
	} else if err != nil {
		return nil, err
	}
	if err := s.enter(current, pass); err != nil {
		return nil, err
	}
	if missing {
		return s.ConfigMaps.Create(ctx, current, metav1.CreateOptions{})
	}
	return s.ConfigMaps.Update(ctx, current, metav1.UpdateOptions{})
}

// enter adds the pass to what the ConfigMap holds. What cannot be read is replaced: else one broken edit would end the record.
func (s Store) enter(current *corev1.ConfigMap, pass Pass) error {
	status, err := s.parse(current.Data[dataKey])
	if err != nil {
		status = Status{Environment: s.Environment}
	}
	status.Add(pass)
	content, err := json.Marshal(status)
	if err != nil {
		return fmt.Errorf("encoding the status: %w", err)
	}
	if current.Data == nil {
		current.Data = map[string]string{}
	}
	current.Data[dataKey] = string(content)
	return nil
}
