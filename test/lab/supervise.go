package lab

import (
	"context"
	"time"
)

const (
	// attendance is how often the replicas are looked after.
	attendance = 250 * time.Millisecond
	// attendanceTimeout bounds one look at a replica.
	attendanceTimeout = time.Second
)

// Supervise does for the replicas, until the context ends, what a cluster does: a replica that has ended is started again, and only
// those that say that they are ready are asked. A replica that leads ends when it loses its lease.
func (w *Webhook) Supervise(ctx context.Context) {
	ticker := time.NewTicker(attendance)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			w.attend(ctx)
		}
	}
}

func (w *Webhook) attend(ctx context.Context) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	var ready []string
	for i, replica := range w.replicas {
		select {
		case <-replica.process.Exited():
			// One that cannot be started is tried again.
			if again, err := w.launch(ctx, i, replica.spec); err == nil {
				_ = replica.Link.close() // nobody is left to use it
				w.replicas[i] = again
			}
			continue
		default:
		}
		if replica.ready(ctx) == nil {
			ready = append(ready, replica.Address)
		}
	}
	if ctx.Err() == nil {
		w.balancer.use(ready)
	}
}

func (r *Replica) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, attendanceTimeout)
	defer cancel()
	return expectOK(ctx, "http://"+r.HealthAddress+"/readyz")
}
