// Package certificate keeps the certificate that the webhook serves with, and the API server's trust in it.
//
// Authority and serving certificate are in one Secret. The leader alone renews them, and writes the authorities into the webhook
// configurations; every replica serves with what the Secret holds. There is no moment at which the API server does not trust what is
// served:
//
//   - An authority is stored, and trusted by every configuration, before it signs. Where something that is still good may be
//     served, it does not sign before it has been trusted for the time of settling.
//   - An authority that was trusted stays trusted until it ends, and no certificate outlives its authority. So whatever a replica
//     serves, be it late in learning of a new one, is trusted.
//   - A bundle that was blanked or overwritten is written again as soon as it is seen; one that names other authorities gets ours
//     beside them.
//
// The assumptions: clocks are less than an hour apart, and each kube-apiserver learns of a change in the time of settling.
package certificate

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Options say where the certificate is kept, and for whom.
type Options struct {
	// Namespace and Secret name the Secret. It has to exist, and may be empty.
	Namespace, Secret string
	// Registration is the name of the mutating and of the validating webhook configuration.
	Registration string
	// DNSNames are the names under which the API server reaches the webhook; at least one.
	DNSNames []string
	Clock    clock.Clock
	Log      *zap.Logger
}

// SetUp adds to a manager what keeps the certificate, on the leader, and gives where every replica's certificate comes from.
func SetUp(m manager.Manager, client kubernetes.Interface, options Options) (Source, error) {
	changes := make(chan struct{}, 1)
	source := &secretSource{}
	secrets := &secretWatch{options: options, client: client, source: source, changes: changes}
	leader := &leader{options: options, client: client, changes: changes}
	for _, runnable := range []manager.Runnable{secrets, leader} {
		if err := m.Add(runnable); err != nil {
			return nil, fmt.Errorf("adding the keeping of the certificate to the manager: %w", err)
		}
	}
	return source, nil
}

// secretWatch hands every replica what the Secret holds.
type secretWatch struct {
	options Options
	client  kubernetes.Interface
	source  *secretSource
	changes chan<- struct{}
}

// NeedLeaderElection says that every replica does it.
func (*secretWatch) NeedLeaderElection() bool { return false }

// Start watches until the context ends.
func (w *secretWatch) Start(ctx context.Context) error {
	factory := onlyNamed(w.client, w.options.Secret, informers.WithNamespace(w.options.Namespace))
	load := func(object any) {
		if secret, ok := object.(*corev1.Secret); ok {
			if err := w.source.load(secret); err != nil {
				w.options.Log.Warn("waiting for a certificate", zap.String("secret", w.options.Namespace+"/"+w.options.Secret), zap.Error(err))
			}
		}
	}
	return watch(ctx, factory, w.changes, load, factory.Core().V1().Secrets().Informer())
}

// leader runs the keeper, whenever something changed and whenever it is due.
type leader struct {
	options Options
	client  kubernetes.Interface
	changes chan struct{}
}

// NeedLeaderElection says that one replica does it.
func (*leader) NeedLeaderElection() bool { return true }

// Start keeps the certificate until the context ends. What fails is tried again; the webhook serves on with what it has.
func (l *leader) Start(ctx context.Context) error {
	o := l.options
	k := &keeper{
		secrets: l.client.CoreV1().Secrets(o.Namespace), secret: o.Secret,
		registrations: registrations{client: l.client.AdmissionregistrationV1(), name: o.Registration},
		issuer:        newIssuer(o.DNSNames), clock: o.Clock, log: o.Log,
	}
	factory := onlyNamed(l.client, o.Registration)
	configurations := factory.Admissionregistration().V1()
	watching := make(chan error, 1)
	go func() {
		watching <- watch(ctx, factory, l.changes, nil, configurations.MutatingWebhookConfigurations().Informer(), configurations.ValidatingWebhookConfigurations().Informer())
	}()
	pause := retry()
	for {
		again, err := k.keep(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return <-watching
			}
			again = pause.Step()
			o.Log.Error("the certificate could not be looked after; trying again", zap.Error(err), zap.Duration("in", again))
		} else {
			pause = retry()
		}
		timer := o.Clock.NewTimer(again)
		select {
		case <-ctx.Done():
			timer.Stop()
			return <-watching
		case <-l.changes:
			timer.Stop()
		case <-timer.C():
		}
	}
}

// onlyNamed makes informers of the objects of one name: no right to read any other is needed.
func onlyNamed(client kubernetes.Interface, name string, more ...informers.SharedInformerOption) informers.SharedInformerFactory {
	selected := informers.WithTweakListOptions(func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	})
	return informers.NewSharedInformerFactoryWithOptions(client, 0, append(more, selected)...)
}

// watch tells of every change, until the context ends.
func watch(ctx context.Context, factory informers.SharedInformerFactory, changes chan<- struct{}, seen func(any), watched ...cache.SharedIndexInformer) error {
	note := func(object any) {
		if seen != nil {
			seen(object)
		}
		select {
		case changes <- struct{}{}:
		default: // One that is not read yet stands for this one too.
		}
	}
	for _, informer := range watched {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: note, UpdateFunc: func(_, object any) { note(object) }, DeleteFunc: func(any) { note(nil) },
		})
		if err != nil {
			return fmt.Errorf("watching for changes of the certificate: %w", err)
		}
	}
	factory.Start(ctx.Done())
	<-ctx.Done()
	factory.Shutdown()
	return nil
}

// retry gives how long after each failure the next attempt is made.
func retry() wait.Backoff {
	return wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 7, Cap: 30 * time.Second}
}
