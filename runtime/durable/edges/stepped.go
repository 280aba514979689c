package edges

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	mathrand "math/rand/v2"
	"time"

	"github.com/topogen/topogen/runtime/durable"
	"github.com/topogen/topogen/runtime/piper"
)

// stepped is what the edges of a topology under a Stepper have: a store in memory, whose time
// is that of the Stepper, and a worker without goroutines.
type stepped struct {
	memory  *Memory
	worker  *durable.Worker
	random  *mathrand.Rand
	serving bool            // the instances are initialized
	orphans map[string]bool // tasks that an earlier process has left, and that none has taken yet
}

// BeginStepped implements piper.DurableEdges.
func (e *Carrier) BeginStepped(p *piper.Pool) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.worker != nil {
		panic("topogen: a message was sent along a durable edge before Stepper was called")
	}
	m := e.settings.memory()
	if m == nil {
		m = NewMemory()
	}
	started := m.attach(func() time.Time { return piper.Epoch().Add(p.Clock()) })
	s := &stepped{memory: m, random: mathrand.New(mathrand.NewPCG(uint64(m.attached), 1)), orphans: m.unfinished()}
	e.pool, e.stepped, e.source.now, e.source.stays = p, s, &opened{Backend: m}, true
	c := e.workerConfig(newPID(ownerPrefix))
	c.Manual, c.Now, c.Random, c.Chance, c.Await = true, m.time, s.random.Uint64, s.random.Float64, p.Await
	w, err := durable.NewWorker(c)
	if err != nil {
		panic(fmt.Sprintf("topogen: the worker of a Stepper: %v", err)) // the generated configuration is complete
	}
	e.worker, s.worker = w, w
	return started.Sub(piper.Epoch())
}

// Step implements piper.DurableEdges.
func (e *Carrier) Step() bool {
	s := e.stepped
	if s == nil || !s.serving || e.isEnding() {
		return false
	}
	switch {
	case s.memory.step():
		e.finish.check()
		return true
	case s.worker.Step():
		return true
	}
	return e.lookStepped()
}

// lookStepped closes groups that have finished. It reports whether it looked.
func (e *Carrier) lookStepped() bool {
	e.finish.mu.Lock()
	due := e.finish.due && len(e.finish.groups) > 0
	e.finish.mu.Unlock()
	if due {
		e.finish.look()
	}
	return due
}

func (e *Carrier) isEnding() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ending
}

// Next implements piper.DurableEdges.
func (e *Carrier) Next() (clock time.Duration, ok bool) {
	s := e.stepped
	if s == nil || !s.serving || e.isEnding() {
		return 0, false
	}
	at, ok := s.memory.next()
	if own, any := s.worker.Next(); any && (!ok || own.Before(at)) {
		at, ok = own, true
	}
	if !ok {
		return 0, false
	}
	if now := s.memory.time(); !at.After(now) {
		at = now.Add(time.Millisecond) // Step had its chance to do what is due now
	}
	return at.Sub(piper.Epoch()), true
}

// AwaitsTime implements piper.DurableEdges: a timer runs, or a task of an earlier process waits
// until its lease ends.
func (e *Carrier) AwaitsTime() bool {
	s := e.stepped
	if s == nil || !s.serving || e.isEnding() || s.memory.Crashed() {
		return false
	}
	for id := range s.orphans {
		if !s.memory.isUnfinished(id) {
			delete(s.orphans, id)
		}
	}
	return len(s.orphans) > 0 || s.memory.hasTimer()
}

// fresh is a new id.
func (e *Carrier) fresh() string {
	if s := e.stepped; s != nil {
		return fmt.Sprintf("%016x%016x", s.random.Uint64(), s.random.Uint64())
	}
	var b [16]byte
	_, _ = rand.Read(b[:]) // it does not fail
	return hex.EncodeToString(b[:])
}
