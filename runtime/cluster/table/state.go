package table

import (
	"fmt"
	"strconv"
	"sync/atomic"
	"time"
)

// State is the table as a state machine: Apply changes it, and equal commands make equal
// states. It has no clock, lock or goroutine. One goroutine at a time may call its
// methods, except Lookup.
type State struct {
	revision Revision
	epoch    uint64 // the last one that a transaction has given
	token    uint64 // of the last lease
	leases   map[string]*lease
	counts   []int // containers by slot
	layout   atomic.Pointer[layout]
}

// lease is a lease in a state.
type lease struct {
	LeaseState
	ttl     time.Duration
	renewed int64 // time of the entry, Unix nanoseconds

	asked time.Duration // of the last renewal, see Renewal.Asked; not in snapshots, because only its holder needs it
}

// expired reports whether another holder may acquire the lease.
func (l *lease) expired(now int64) bool { return now > l.renewed+int64(l.ttl+clockMargin) }

// NewState returns an empty table.
func NewState() *State {
	s := &State{leases: map[string]*lease{}}
	s.layout.Store(&layout{})
	return s
}

// Revision returns the revision of the last transaction that was applied.
func (s *State) Revision() Revision { return s.revision }

// HasPlan reports whether the processors are defined.
func (s *State) HasPlan() bool { return s.layout.Load().plan.Hash != "" }

// nextEpoch is the epoch that a transaction gives to containers and processes: the index of its entry in
// the log. Several transactions of one entry, and those after a Merge with a longer log, get higher ones.
func (s *State) nextEpoch() uint64 { return max(s.revision.Index, s.epoch+1) }

// Lookup returns the node of a container and the container's epoch. processor is the
// index of the processor in the last Define. The node is nil if the container has no
// place or does not exist. The caller must not change the node.
func (s *State) Lookup(processor, instance int) (*Node, uint64) {
	for {
		l := s.layout.Load()
		if uint(processor) >= uint(len(l.processors)) || uint(instance) >= uint(len(l.processors[processor].places)) {
			return nil, 0
		}
		cell := &l.processors[processor].places[instance]
		c := cell.Load()
		// A slot belongs to one node as long as a cell contains it. So this node is the
		// node of the cell if the cell has not changed, because an epoch never comes back.
		now := s.layout.Load()
		slot, epoch := unpackCell(c)
		n := now.node(slot)
		if cell.Load() == c && now.generation == l.generation {
			return n, n.epochOf(epoch)
		}
	}
}

// Apply applies a command. revision must be above that of the last command. now is the
// time of the command, Unix nanoseconds. The event is nil if nothing has changed.
func (s *State) Apply(revision Revision, now int64, c *Command) (Outcome, *Event) {
	s.revision = revision
	out := Outcome{Position: revision.Position}
	e := &Event{Revision: revision}
	var err *refusal
	switch c.Kind {
	case CommandTxn:
		err = s.txn(c, e)
	case CommandAcquire:
		out.Number, err = s.acquire(c, now, e)
	case CommandRenew:
		s.renew(c, now)
	case CommandRelease:
		err = s.release(c, e)
	default:
		err = refuse(codeInvalid, "%d is not a kind of command", c.Kind)
	}
	if err != nil {
		out.Code, out.Index, out.Number, out.Text = err.code, err.index, err.number, err.text
		return out, nil
	}
	if e.empty() {
		return out, nil
	}
	return out, e
}

// refusal is the reason why a command changed nothing.
type refusal struct {
	code   uint8
	index  int    // of the guard
	number uint64 // for codeHeld: nanoseconds until the lease expires
	text   string
}

func refuse(code uint8, format string, args ...any) *refusal {
	return &refusal{code: code, text: fmt.Sprintf(format, args...)}
}

// txn applies a transaction.
func (s *State) txn(c *Command, e *Event) *refusal {
	l := s.layout.Load()
	for i, g := range c.Guards {
		if got, ok := s.holds(l, g); !ok {
			return &refusal{code: codeGuard, index: i, text: got}
		}
	}
	d := draft{state: s, before: l, plan: l.plan.Hash}
	for i, change := range c.Changes {
		if err := d.add(i, change); err != nil {
			return err
		}
	}
	if err := d.finish(); err != nil {
		return err
	}
	d.commit(e)
	return nil
}

// holds reports whether a guard holds. got is the value in the table.
func (s *State) holds(l *layout, g Guard) (got string, ok bool) {
	switch g := g.(type) {
	case PlanIs:
		return strconv.Quote(l.plan.Hash), g.Plan == l.plan.Hash
	case EpochIs:
		at, known := l.byName[g.Processor]
		if !known || uint(g.Instance) >= uint(len(l.processors[at].places)) {
			return "no such container", false
		}
		slot, epoch := unpackCell(l.processors[at].places[g.Instance].Load())
		epoch = l.node(slot).epochOf(epoch)
		return strconv.FormatUint(epoch, 10), epoch == g.Epoch
	case BootIs:
		boot := Boot(0)
		if n := l.named(g.Name); n != nil {
			boot = n.Boot
		}
		return boot.String(), boot == g.Boot
	case StateIs:
		state := Forgotten
		if n := l.named(g.Name); n != nil {
			state = n.State
		}
		return state.String(), state == g.State
	case LeaseIs:
		token := uint64(0)
		if o := s.leases[g.Name]; o != nil {
			token = o.Token
		}
		return strconv.FormatUint(token, 10), token == g.Token
	case ProcessesAre:
		hash := l.processes()
		return strconv.FormatUint(hash, 16), hash == g.Hash
	}
	return "an unknown guard", false
}

// acquire gives a lease to a holder. The holder that has it gets it again with a new token: it may have
// lost the answer to its request, or its process was killed and runs again.
func (s *State) acquire(c *Command, now int64, e *Event) (token uint64, err *refusal) {
	if o := s.leases[c.Name]; o != nil && o.Holder != c.Holder && !o.expired(now) {
		err := refuse(codeHeld, "%q has the lease %q", o.Holder, c.Name)
		err.number = uint64(max(1, o.renewed+int64(o.ttl+clockMargin)-now))
		return 0, err
	}
	if s.leases[c.Name] == nil && len(s.leases) >= LeasesMax {
		return 0, refuse(codeLimit, "there are already %d leases", LeasesMax)
	}
	s.token++
	o := &lease{LeaseState: LeaseState{Name: c.Name, Holder: c.Holder, Token: s.token}, ttl: c.TTL, renewed: now}
	s.leases[c.Name] = o
	e.Leases = append(e.Leases, o.LeaseState)
	return s.token, nil
}

// renew extends the leases that still have their tokens. The others have another holder, or none.
func (s *State) renew(c *Command, now int64) {
	for _, w := range c.Renewals {
		if o := s.leases[w.Name]; o != nil && o.Token == w.Token {
			o.renewed, o.asked = max(o.renewed, now), max(o.asked, w.Asked)
		}
	}
}

// release removes a lease.
func (s *State) release(c *Command, e *Event) *refusal {
	if o := s.leases[c.Name]; o == nil || o.Token != c.Token {
		return refuse(codeLost, "the lease %q does not have the token %d any more", c.Name, c.Token)
	}
	delete(s.leases, c.Name)
	e.Leases = append(e.Leases, LeaseState{Name: c.Name})
	return nil
}
