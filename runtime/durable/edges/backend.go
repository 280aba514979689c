package edges

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/topogen/topogen/runtime/durable"
	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/store"
)

// errEnded is the error of operations after the end of Run.
var errEnded = fmt.Errorf("durable: the topology has ended: %w", durable.ErrStopping)

// source is the backend of the worker. It opens the store at the first operation, and ends
// for good when Run returns.
type source struct {
	open func() (opened backend, err error)

	mu    sync.Mutex
	now   backend // nil before it was opened
	ended bool
}

// backend is what both engines have: package engine with a disk, package local without.
type backend interface {
	protocol.Backend
	DoAll(ctx context.Context, ops []protocol.Operation) ([]protocol.Result, error)
}

// get opens the store if it is not open.
func (s *source) get() (backend, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended:
		return nil, errEnded
	case s.now != nil:
		return s.now, nil
	}
	b, err := s.open()
	if err != nil {
		return nil, errors.Join(err, durable.ErrStopping) // the worker must not try again
	}
	s.now = b
	return b, nil
}

// end refuses further operations, and returns the backend if it was opened.
func (s *source) end() backend {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	return s.now
}

func (s *source) isEnded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// Do carries out an operation.
func (s *source) Do(ctx context.Context, op protocol.Operation) (protocol.Result, error) {
	b, err := s.get()
	if err != nil {
		return protocol.Result{}, err
	}
	r, err := b.Do(ctx, op)
	if s.isEnded() && (err != nil || r.Status == protocol.Unavailable) {
		return protocol.Result{}, errEnded
	}
	return r, err
}

// DoAll carries out several operations with one write.
func (s *source) DoAll(ctx context.Context, ops []protocol.Operation) ([]protocol.Result, error) {
	b, err := s.get()
	if err != nil {
		return nil, err
	}
	results, err := b.DoAll(ctx, ops)
	if s.isEnded() && (err != nil || len(results) > 0 && results[0].Status == protocol.Unavailable) {
		return nil, errEnded
	}
	return results, err
}

// Connect connects the worker.
func (s *source) Connect(group, pid string) (protocol.Connection, error) {
	b, err := s.get()
	if err != nil {
		return nil, err
	}
	return b.Connect(group, pid)
}

// openEngine opens the store in the folder, or in memory.
func (e *Carrier) openEngine() (backend, error) {
	var kept store.Store
	if m := e.settings.memory(); m != nil {
		kept = m.running()
	} else {
		disk, err := store.Open(e.config.Store, store.Options{})
		if err != nil {
			return nil, fmt.Errorf("durable: opening the store of the topology: %w", err)
		}
		kept = disk
	}
	opened, err := engine.Open(engine.Config{Store: kept, Logger: e.log})
	if err != nil {
		_ = kept.Close()
		return nil, fmt.Errorf("durable: opening the store of the topology: %w", err)
	}
	return opened, nil
}
