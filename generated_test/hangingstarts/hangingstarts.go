// Package hangingstarts has a processor whose constructor, Init and Close hang.
package hangingstarts

import (
	"errors"
	"sync"

	"github.com/topogen/topogen/runtime/topo"
)

// Faults are functions that the next calls run, by the name of the call: new, init or close.
var Faults faults

type faults struct {
	mu   sync.Mutex
	next map[string]func()
}

// Set sets the function of a call. It runs once.
func (f *faults) Set(call string, fault func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.next == nil {
		f.next = make(map[string]func())
	}
	f.next[call] = fault
}

func (f *faults) run(call string) {
	f.mu.Lock()
	fault := f.next[call]
	delete(f.next, call)
	f.mu.Unlock()
	if fault != nil {
		fault()
	}
}

type (
	Order   struct{ Fail bool }
	Outcome struct{}
)

// Part is a processor.
type Part struct{}

func NewPart(topo.Instance) *Part {
	Faults.run("new")
	return &Part{}
}

func (*Part) Init() error {
	Faults.run("init")
	return nil
}

func (*Part) Close() error {
	Faults.run("close")
	return nil
}

func (*Part) ReceiveOrder(o Order) (Outcome, error) {
	if o.Fail {
		return Outcome{}, errors.New("as ordered")
	}
	return Outcome{}, nil
}
