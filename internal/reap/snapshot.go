package reap

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"go.uber.org/zap"
)

// Snapshot is what a pass saw. The cluster was read first and the database after it: a row is committed before its virtual
// machine is created, so every object that was listed had its row by the time that the rows were read.
type Snapshot struct {
	// Objects are all lab objects, and all machines, of the environments' namespaces.
	Objects []Object
	// ListedAt is the pass's clock before the first list, or after the last where that is earlier: their answers may have set it right.
	ListedAt time.Time
	// MachinesErr tells why the virtual machines could not be listed whole; then nothing in the cluster may be judged.
	MachinesErr error
	// ObjectsErr tells why some other kind could not be listed whole.
	ObjectsErr error

	// Rows are the sessions that are not known to be over.
	Rows Rows
	// RowsErr tells why they could not be read whole.
	RowsErr error
	// WithoutRows says why this pass looks at no rows, where that is no fault; empty where it needs them.
	WithoutRows string
}

// place is a kind in a namespace.
type place struct {
	kind      Kind
	namespace string
}

func (p *Pass) places() []place {
	vms := p.Contract.VMNamespace
	places := []place{{VirtualMachine, vms}, {VirtualMachineInstance, vms}, {Secret, vms}, {Service, vms}, {NetworkPolicy, vms}}
	for _, namespace := range p.Contract.PodNamespaces {
		places = append(places, place{Pod, namespace})
	}
	return places
}

// Read takes the snapshot. It has no error of its own: what could not be read is in the snapshot, and aborts the directions
// that depend on it.
func (p *Pass) Read(ctx context.Context) Snapshot {
	s := Snapshot{ListedAt: p.Clock.Now(), WithoutRows: p.WithoutStore}
	p.readObjects(ctx, &s)
	if now := p.Clock.Now(); now.Before(s.ListedAt) {
		// Nothing had told the time before. By the later one an object could be old enough to be an orphan's before it is.
		s.ListedAt = now
	}
	if s.MachinesErr != nil {
		return s
	}
	switch {
	case p.StoreErr != nil:
		s.RowsErr = p.StoreErr
	case p.WithoutStore == "":
		s.Rows, s.RowsErr = p.readRows(ctx)
	}
	return s
}

// readObjects lists all kinds at the same time: none says anything of another, and one after the other they would be most of what a pass
// with nothing to do takes.
func (p *Pass) readObjects(ctx context.Context, s *Snapshot) {
	places := p.places()
	lists, errs := make([][]Object, len(places)), make([]error, len(places))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wait sync.WaitGroup
	for i, place := range places {
		wait.Go(func() {
			lists[i], errs[i] = p.list(ctx, place)
			if errs[i] != nil && place.kind == VirtualMachine {
				// Nothing can be judged any more; what else hangs need not be waited for.
				cancel()
			}
		})
	}
	wait.Wait()
	for i, place := range places {
		switch {
		case errs[i] == nil:
			s.Objects = append(s.Objects, lists[i]...)
		case place.kind == VirtualMachine:
			s.MachinesErr = errs[i]
		default:
			s.ObjectsErr = errors.Join(s.ObjectsErr, errs[i])
		}
	}
}

// list lists a kind in a namespace. It runs beside others, where nobody else would catch a panic.
func (p *Pass) list(ctx context.Context, place place) (objects []Object, err error) {
	defer func() {
		if recovered := recover(); recovered != nil {
			p.Log.Error("listing panicked", zap.Any("panic", recovered), zap.ByteString("stack", debug.Stack()))
			err = fmt.Errorf("listing %s: panic: %v", place.kind.Resource.Resource, recovered)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, p.Settings.ItemTimeout)
	defer cancel()
	return p.Cluster.List(ctx, place.kind, place.namespace)
}

func (p *Pass) readRows(ctx context.Context) (Rows, error) {
	ctx, cancel := context.WithTimeout(ctx, p.Settings.ItemTimeout)
	defer cancel()
	rows, err := p.Store.Read(ctx)
	if err != nil {
		return Rows{}, fmt.Errorf("reading the live sessions: %w", err)
	}
	return rows, nil
}
