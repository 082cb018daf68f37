// Package reap makes cluster and sessions table agree again. Data goes one way: objects and rows → snapshot → plan → gate →
// report.
package reap

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/ttlab/vmwarden/internal/lab"
)

// ClusterAccess is what a pass needs of the API server.
type ClusterAccess interface {
	List(ctx context.Context, kind Kind, namespace string) ([]Object, error)
	Get(ctx context.Context, kind Kind, namespace, name string) (Object, error)
	Annotate(ctx context.Context, object Object, key, value string) error
	Delete(ctx context.Context, object Object) error
}

// SessionStore is what a pass needs of the sessions table.
type SessionStore interface {
	// Read gives all rows that are not known to be over, the clock and the fence, all of one moment.
	Read(ctx context.Context) (Rows, error)
	// Expire locks the row, checks that it is still live and past its end, runs work, and only after that succeeded writes
	// that the session expired. The reason is not empty where the row was left alone, by itself or by work.
	Expire(ctx context.Context, id string, work LockedWork) (left string, err error)
	// Live tells whether a row of this id is not known to be over.
	Live(ctx context.Context, id string) (bool, error)
	// Fail writes that a running session failed, if it still runs under this virtual machine's name and started longer ago
	// than the grace. It reports false where it does not.
	Fail(ctx context.Context, id, vmName string, grace time.Duration) (bool, error)
}

// LockedWork is done while a row is locked. A lock goes with its connection, and nobody says so: stillLocked asks, and its error
// means that the row may have changed hands. The reason is not empty where the work left something as it was.
type LockedWork func(ctx context.Context, stillLocked func(context.Context) error) (left string, err error)

// Pass is one reconciliation of one environment.
type Pass struct {
	Cluster ClusterAccess
	Store   SessionStore
	// WithoutStore says why this pass does without the store, where that is no fault: it looks at deadlines alone. Empty: it uses it.
	WithoutStore string
	// StoreErr, if set, says why the store must not be used in this pass.
	StoreErr error
	Contract lab.Contract
	Settings Settings
	Clock    clock.PassiveClock
	Log      *zap.Logger
	// Progress, if set, is told after each item how many of a direction's are finished. Calls do not overlap.
	Progress func(direction Direction, finished, of int)
}

// Run reads, plans and applies. When ctx is cancelled it begins nothing more, finishes what it is at, and reports; the
// deadline of ctx ends that too.
func (p *Pass) Run(ctx context.Context) Report {
	started := p.Clock.Now()
	report := p.Apply(ctx, p.Plan(ctx))
	report.StartedAt, report.Duration = started, p.Clock.Since(started)
	return report
}

// Plan reads and plans. A panic makes an empty plan that holds every direction.
func (p *Pass) Plan(ctx context.Context) (plan Plan) {
	defer func() {
		if recovered := recover(); recovered != nil {
			p.Log.Error("planning panicked", zap.Any("panic", recovered), zap.ByteString("stack", debug.Stack()))
			plan = Plan{}
			plan.hold(Aborted, fmt.Sprintf("panic: %v", recovered), Directions()...)
		}
	}()
	return MakePlan(p.Read(ctx), p.Settings)
}

// Apply works off a plan, direction by direction, in each several items at once. No item's failure keeps another from its
// turn. A cancelled ctx lets the items at hand finish and begins no other.
func (p *Pass) Apply(ctx context.Context, plan Plan) Report {
	report := Report{Environment: p.Settings.Environment, StartedAt: p.Clock.Now(), Holds: plan.Holds, Notices: plan.Notices}
	for _, direction := range Directions() {
		report.Items = append(report.Items, p.applyAll(ctx, direction, plan.Of(direction))...)
	}
	report.Duration = p.Clock.Since(report.StartedAt)
	return report
}

func (p *Pass) applyAll(ctx context.Context, direction Direction, actions []Action) []Item {
	items := make([]Item, len(actions))
	var group errgroup.Group
	group.SetLimit(p.Settings.Concurrency)
	var mutex sync.Mutex
	finished := 0
	for i, action := range actions {
		group.Go(func() error {
			items[i] = p.applyOne(ctx, action)
			if p.Progress != nil {
				mutex.Lock()
				defer mutex.Unlock()
				finished++
				p.Progress(direction, finished, len(actions))
			}
			return nil
		})
	}
	// The group's functions answer no error: each item keeps its own.
	_ = group.Wait()
	return items
}

// applyOne does one item under its own time limit. A panic is that item's failure, not the pass's.
func (p *Pass) applyOne(ctx context.Context, action Action) (item Item) {
	item = Item{Action: action, Result: Failed}
	defer func() {
		if recovered := recover(); recovered != nil {
			item.Result, item.Detail = Failed, fmt.Sprintf("panic: %v", recovered)
			p.Log.Error("an item panicked", zap.Any("panic", recovered), zap.ByteString("stack", debug.Stack()))
		}
		p.record(item)
	}()
	if err := ctx.Err(); err != nil {
		item.Detail = "not reached: the pass was told to stop"
		if errors.Is(err, context.DeadlineExceeded) {
			item.Detail = "not reached: the pass ran out of time"
		}
		return item
	}
	ctx, cancel := BeyondCancel(ctx, p.Settings.ItemTimeout)
	defer cancel()
	kept, err := p.do(ctx, action)
	switch {
	case err != nil:
		item.Detail = err.Error()
		if errors.Is(err, context.DeadlineExceeded) {
			item.Detail = fmt.Sprintf("not done within %s: %v", p.Settings.ItemTimeout, err)
		}
	case kept != "":
		item.Result, item.Detail = Kept, kept
	default:
		item.Result = Done
	}
	return item
}

func (p *Pass) do(ctx context.Context, action Action) (kept string, err error) {
	switch action.Direction {
	case Expired:
		return p.expire(ctx, action)
	case Orphan:
		return p.deleteOrphan(ctx, action)
	case Ghost:
		return p.failGhost(ctx, action)
	case Deadline:
		return p.deletePastDeadline(ctx, action)
	}
	return "", fmt.Errorf("direction %q is not one of a pass", action.Direction)
}

// expire deletes what a session owns while its row is locked: a student who presses extend meanwhile either came first, and
// keeps the machine, or waits and is told that the session is over.
func (p *Pass) expire(ctx context.Context, action Action) (string, error) {
	return p.Store.Expire(ctx, action.Session, func(ctx context.Context, stillLocked func(context.Context) error) (string, error) {
		gate := p.gate()
		gate.confirm = stillLocked
		for _, object := range action.Objects {
			kept, err := gate.delete(ctx, action, object, still(object))
			if err != nil {
				return "", err
			}
			if kept != "" {
				return fmt.Sprintf("%s: %s; the next pass looks again", object, kept), nil
			}
		}
		return "", nil
	})
}

// deleteOrphan asks the database about this one session again: its row may have been committed after the rows were read.
func (p *Pass) deleteOrphan(ctx context.Context, action Action) (string, error) {
	live, err := p.Store.Live(ctx, action.Session)
	if err != nil {
		return "", err
	}
	if live {
		return "its session is live now", nil
	}
	return p.gate().delete(ctx, action, action.Objects[0], still(action.Objects[0]))
}

// failGhost believes that a virtual machine does not exist only when the API server says so of its very name.
func (p *Pass) failGhost(ctx context.Context, action Action) (string, error) {
	_, err := p.Cluster.Get(ctx, VirtualMachine, p.Settings.VMNamespace, action.Row.VMName)
	if err == nil {
		return "its virtual machine exists now", nil
	}
	if !apierrors.IsNotFound(err) {
		return "", err
	}
	failed, err := p.Store.Fail(ctx, action.Session, action.Row.VMName, p.Settings.StartupGrace)
	if err == nil && !failed {
		return "its row changed meanwhile", nil
	}
	return "", err
}

func (p *Pass) deletePastDeadline(ctx context.Context, action Action) (string, error) {
	return p.gate().delete(ctx, action, action.Objects[0], stillPastDeadline(action.Objects[0], p.Clock.Now))
}

func (p *Pass) gate() *gate {
	return &gate{cluster: p.Cluster, environment: p.Settings.Environment, itemTimeout: p.Settings.ItemTimeout, clock: p.Clock, log: p.Log}
}

// record writes one line an item. The fields are a fixed schema.
func (p *Pass) record(item Item) {
	objects := make([]string, len(item.Objects))
	for i, object := range item.Objects {
		objects[i] = object.String()
	}
	log := p.Log.Info
	if item.Result == Failed {
		log = p.Log.Error
	}
	log(lab.ItemMessage, zap.String("direction", string(item.Direction)), zap.String("session", item.Session), zap.Strings("objects", objects),
		zap.String("result", string(item.Result)), zap.String("reason", item.Reason), zap.String("detail", item.Detail))
}
