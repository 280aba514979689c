package durable

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// cycleTimeout is far above a cycle, and below the time after which a message is sent
// again.
const cycleTimeout = 20 * time.Second

// workers are the tasks that are carried out at a time, by one process.
const workers = 64

// Cycles are workers and clients that run the full cycle.
type Cycles struct {
	system   *System
	group    string
	worker   protocol.Connection
	listener protocol.Connection
	all      sync.WaitGroup
	failed   chan error

	mu      sync.Mutex
	waiting map[string]chan struct{} // by promise; closed when it is settled
}

// OpenCycles connects the workers and the listener.
func (s *System) OpenCycles() (c *Cycles, err error) {
	c = &Cycles{system: s, group: newID(), failed: make(chan error, 1), waiting: map[string]chan struct{}{}}
	if c.worker, err = s.Connect(c.group, "worker"); err != nil {
		return nil, err
	}
	if c.listener, err = s.Connect(c.group+"-clients", "one"); err != nil {
		c.worker.Close()
		return nil, err
	}
	for range workers {
		c.all.Go(c.work)
	}
	c.all.Go(c.listen)
	return c, nil
}

// Close disconnects. All cycles must have ended.
func (c *Cycles) Close() {
	c.worker.Close()
	c.listener.Close()
	c.all.Wait()
}

// Run lets clients run cycles, and returns their number.
func (c *Cycles) Run(clients int, more func() bool) (int, error) {
	return loop(clients, more, func(int) error { return c.cycle() })
}

func (c *Cycles) cycle() error {
	id := newID()
	settled := make(chan struct{})
	c.mu.Lock()
	c.waiting[id] = settled
	c.mu.Unlock()
	op := create(id)
	op.Tags[protocol.TagTarget] = "poll://any@" + c.group
	if _, err := do(ctx, c.system, op); err != nil {
		return err
	}
	res, err := do(ctx, c.system, protocol.RegisterListener{Awaited: id, Address: "poll://uni@" + c.group + "-clients/one"})
	if err != nil {
		return err
	}
	if res.Promise.State != protocol.Pending { // it was faster than the registration
		c.settled(id)
	}
	timeout := time.NewTimer(cycleTimeout)
	defer timeout.Stop()
	select {
	case <-settled:
		return nil
	case err := <-c.failed:
		return err
	case <-timeout.C:
		return fmt.Errorf("promise %s was not settled in %v", id, cycleTimeout)
	}
}

// work acquires and fulfils the tasks of the messages.
func (c *Cycles) work() {
	for m := range c.worker.Messages() {
		if m.Execute == nil {
			continue
		}
		if err := c.fulfil(m.Execute); err != nil {
			select {
			case c.failed <- err:
			default:
			}
		}
	}
}

func (c *Cycles) fulfil(t *protocol.TaskRef) error {
	res, err := do(ctx, c.system, protocol.TaskAcquire{ID: t.ID, Version: t.Version, PID: "worker", TTL: 60_000})
	if err != nil {
		return err
	}
	if res.Task == nil || res.Promise == nil {
		return errors.New("a response of task.acquire has no task or no promise")
	}
	_, err = do(ctx, c.system, protocol.TaskFulfill{ID: t.ID, Version: res.Task.Version, Action: settle(t.ID)})
	return err
}

func (c *Cycles) listen() {
	for m := range c.listener.Messages() {
		if m.Unblock != nil {
			c.settled(m.Unblock.ID)
		}
	}
}

func (c *Cycles) settled(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if settled, ok := c.waiting[id]; ok {
		close(settled)
		delete(c.waiting, id)
	}
}
