package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

const (
	// ConfigMapName is the ConfigMap in the VM namespace that holds the page.
	ConfigMapName = "vmwarden-ledger"
	// reservationsKey is the key under which it is held, as JSON.
	reservationsKey = "reservations"
)

// ConfigMapBook keeps the page in a ConfigMap. Needs get, create and update on it.
type ConfigMapBook struct {
	ConfigMaps corev1client.ConfigMapInterface
	Log        *zap.Logger

	// existed: this process has seen the ConfigMap, so one that is missing was deleted.
	existed atomic.Bool
}

// Read gets the ConfigMap from the API server. One that is missing is an empty page. One that somebody made unreadable is an
// empty page too, and said loudly: the next grant writes it anew, and until then the namespace's quota bounds what was in flight.
func (b *ConfigMapBook) Read(ctx context.Context) (Page, error) {
	object, err := b.ConfigMaps.Get(ctx, ConfigMapName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		if b.existed.Swap(false) {
			b.Log.Error("the ledger of reservations was deleted and will be written anew; the quota alone bounds the creates now in flight",
				zap.String("configMap", ConfigMapName))
		}
		return Page{}, nil
	}
	if err != nil {
		return Page{}, fmt.Errorf("getting ConfigMap %s: %w", ConfigMapName, err)
	}
	b.existed.Store(true)
	page := Page{Version: object.ResourceVersion}
	// A key that is missing is unreadable like one that holds no JSON: what we write always has it.
	if err := json.Unmarshal([]byte(object.Data[reservationsKey]), &page.Reservations); err != nil {
		b.Log.Error("the ledger of reservations is unreadable and will be written anew; the quota alone bounds the creates now in flight",
			zap.String("configMap", ConfigMapName), zap.Error(err))
		return Page{Version: object.ResourceVersion}, nil
	}
	page.normalize()
	return page, nil
}

// Write updates the ConfigMap under the version that was read, or creates it.
func (b *ConfigMapBook) Write(ctx context.Context, page Page) error {
	content, err := json.Marshal(page.Reservations)
	if err != nil {
		return fmt.Errorf("encoding the reservations: %w", err)
	}
	object := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name:            ConfigMapName,
			ResourceVersion: page.Version,
			Labels:          map[string]string{"app.kubernetes.io/managed-by": "vmwarden"},
		},
		Data: map[string]string{reservationsKey: string(content)},
	}
	if page.Version == "" {
		_, err = b.ConfigMaps.Create(ctx, object, metav1.CreateOptions{})
	} else {
		_, err = b.ConfigMaps.Update(ctx, object, metav1.UpdateOptions{})
	}
	// NotFound: somebody deleted the ConfigMap after it was read; start over with what is there now.
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || (page.Version != "" && apierrors.IsNotFound(err)) {
		return ErrConflict
	}
	if err != nil {
		return fmt.Errorf("writing ConfigMap %s: %w", ConfigMapName, err)
	}
	b.existed.Store(true)
	return nil
}
