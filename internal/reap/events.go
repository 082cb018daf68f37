package reap

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/ttlab/vmwarden/internal/status"
)

const (
	// maxEvents bounds the Events of one pass: the API server keeps each for an hour, and a pass runs every minute.
	maxEvents = 20
	// maxEventMessage is the API server's own bound, in bytes.
	maxEventMessage = 1024
)

// The reasons of our Events. They are API.
const (
	eventReaped = "Reaped"
	eventGhost  = "SessionFailed"
	eventFailed = "ReapFailed"
	eventHeld   = "ReapHeld"
	eventMore   = "ReapMore"
)

// Events makes the pass's Events, at most maxEvents of them: what was held back, what failed, what was reclaimed. They are about
// the item's first object; fallback stands in where there is none, as for a session whose machine is gone.
func (r Report) Events(fallback corev1.ObjectReference) []*corev1.Event {
	var events []*corev1.Event
	add := func(about corev1.ObjectReference, kind, reason, message string) {
		events = append(events, r.event(about, kind, reason, message))
	}
	for _, hold := range r.Holds {
		add(fallback, corev1.EventTypeWarning, eventHeld, fmt.Sprintf("direction %s is held back (%s): %s", hold.Direction, hold.Cause, hold.Reason))
	}
	for _, item := range r.Items {
		if item.Result == Failed {
			add(about(item, fallback), corev1.EventTypeWarning, eventFailed, fmt.Sprintf("%s of session %s failed, the next pass tries again: %s", item.Direction, item.Session, item.Detail))
		}
	}
	for _, item := range r.Items {
		switch {
		case item.Result != Done:
		case item.Direction == Ghost:
			add(fallback, corev1.EventTypeNormal, eventGhost, fmt.Sprintf("session %s is set to failed: %s", item.Session, item.Reason))
		default:
			add(about(item, fallback), corev1.EventTypeNormal, eventReaped, fmt.Sprintf("%s of session %s: %s; deleted: %s", item.Direction, item.Session, item.Reason, names(item.Objects)))
		}
	}
	if left := len(events) - maxEvents; left > 0 {
		events = events[:maxEvents-1]
		add(fallback, corev1.EventTypeWarning, eventMore, fmt.Sprintf("%d more; see the log of the pass", left+1))
	}
	return events
}

func names(objects []Object) string {
	list := make([]string, len(objects))
	for i, object := range objects {
		list[i] = object.String()
	}
	return strings.Join(list, ", ")
}

func about(item Item, fallback corev1.ObjectReference) corev1.ObjectReference {
	if len(item.Objects) == 0 {
		return fallback
	}
	object := item.Objects[0]
	return corev1.ObjectReference{
		APIVersion: object.Kind.Resource.GroupVersion().String(), Kind: object.Kind.Name,
		Namespace: object.Namespace, Name: object.Name, UID: object.UID,
	}
}

func (r Report) event(about corev1.ObjectReference, kind, reason, message string) *corev1.Event {
	const component = "vmwarden-reapjob"
	at := metav1.NewTime(r.StartedAt.Add(r.Duration))
	return &corev1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: about.Namespace, GenerateName: component + "-" + r.Environment + "-"},
		InvolvedObject:      about,
		Type:                kind,
		Reason:              reason,
		Message:             status.Shorten(message, maxEventMessage),
		Source:              corev1.EventSource{Component: component},
		ReportingController: component,
		ReportingInstance:   r.Environment,
		FirstTimestamp:      at,
		LastTimestamp:       at,
		Count:               1,
	}
}

// SendEvents creates the Events. One that is refused keeps no other from its turn.
func SendEvents(ctx context.Context, client corev1client.EventsGetter, events []*corev1.Event) error {
	var problems []error
	for _, event := range events {
		if _, err := client.Events(event.Namespace).Create(ctx, event, metav1.CreateOptions{}); err != nil {
			problems = append(problems, fmt.Errorf("writing an Event (%s): %w", event.Reason, err))
		}
	}
	return errors.Join(problems...)
}
