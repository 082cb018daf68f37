package certificate

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"
)

// checkInterval is how often the keeper looks although nothing has changed: certificates end by themselves.
const checkInterval = 10 * time.Minute

// keeper is the leader's: it makes authority and serving certificate, and makes the API server trust them first.
type keeper struct {
	secrets       corev1client.SecretInterface
	secret        string
	registrations registrations
	issuer        issuer
	clock         clock.Clock
	log           *zap.Logger

	// trustedSince is when this process first saw every configuration trust the authority trustedSigner. A new leader waits again.
	trustedSince  time.Time
	trustedSigner string
}

// keep does all that can be done now, in the order that leaves no gap: a new authority is stored, then trusted, and only then
// does anything that it signed get stored, from where the replicas serve it. It gives the time until it has to look again.
func (k *keeper) keep(ctx context.Context) (time.Duration, error) {
	now := k.clock.Now()
	secret, err := k.secrets.Get(ctx, k.secret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return 0, fmt.Errorf("reading the certificate's Secret: %w; 'helm upgrade' makes it anew", err)
	}
	if err != nil {
		return 0, fmt.Errorf("reading the certificate's Secret: %w", err)
	}
	held, renewed, err := renewAuthority(readMaterial(secret, now), k.issuer, now)
	if err != nil {
		return 0, err
	}
	if renewed {
		held.writeTo(secret)
		if secret, err = k.secrets.Update(ctx, secret, metav1.UpdateOptions{}); err != nil {
			return 0, fmt.Errorf("storing a new certificate authority: %w", err)
		}
		k.log.Info("a new certificate authority is stored")
	}
	trust, err := k.publish(ctx, held, now)
	if err != nil {
		return 0, err
	}
	next, renewed, wait, err := renewServing(held, k.issuer, now, trust)
	if err != nil || wait > 0 {
		return wait, err
	}
	if !renewed {
		return checkInterval, nil
	}
	next.writeTo(secret)
	if _, err := k.secrets.Update(ctx, secret, metav1.UpdateOptions{}); err != nil {
		return 0, fmt.Errorf("storing a new serving certificate: %w", err)
	}
	k.log.Info("a new serving certificate is stored")
	return checkInterval, nil
}

// publish makes every configuration trust the authorities, and gives what is known of that trust.
func (k *keeper) publish(ctx context.Context, held material, now time.Time) (trust, error) {
	present, err := k.registrations.read(ctx)
	if err != nil {
		return trust{}, err
	}
	t := trust{}
	for _, authority := range trusted(present, now) {
		t.others = t.others || !contains(held.bundle, authority)
	}
	written := false
	for _, registration := range present {
		patched, err := registration.trust(ctx, held, now)
		if err != nil {
			return trust{}, err
		}
		if patched {
			written = true
			k.log.Info("the API server is told what to trust", zap.String("configuration", registration.kind), zap.String("name", k.registrations.name))
		}
	}
	if signer := string(held.signer()); written || k.trustedSigner != signer {
		k.trustedSigner, k.trustedSince = signer, k.clock.Now()
	}
	t.since = k.trustedSince
	return t, nil
}
