package raft

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/topogen/topogen/runtime/fsm"
)

// The messages of rast.md 2.16 between a Processor and its controller. Request is
// the controller's: it comes back in the answer.

// MasterCommit asks for a transaction: it is committed when the Answer comes.
type MasterCommit struct {
	Proposer int // instance of the controller
	Request  uint64
	Data     []byte
}

// GetMasterInfo asks for a MasterInfo.
type GetMasterInfo struct{ Proposer int }

// MasterInfo is what the node knows of the leader: a hint, since it may have
// changed meanwhile. Who must know asks for a Read.
type MasterInfo struct {
	Proposer      int
	IsMaster      bool
	Master        string // "": none is known
	Term          uint64
	TransactionID uint64 // of the newest transaction that this node knows to be committed
}

// GetNextEntry asks for the first transaction that is not marked applied; the
// answer comes when there is one.
type GetNextEntry struct{ Proposer int }

// NextEntry is a committed transaction. Where State is not nil the controller is
// so far behind that the log begins later: State is another node's, as it gave it
// with MarkApplied, and takes the place of all transactions up to this one.
type NextEntry struct {
	Proposer      int
	TransactionID uint64 // 1, 2, …
	Data          []byte
	State         []byte
}

// MarkApplied says that the controller has applied the transactions up to one,
// and will not ask for them. After a restart it says so first, from what it keeps
// itself. With State, the controller's state after that transaction, the log need
// not be kept: without it, it grows.
type MarkApplied struct {
	TransactionID uint64
	State         []byte
}

// ChangeMembers asks for changes of the members, see [Change].
type ChangeMembers struct {
	Proposer int
	Request  uint64
	Changes  []Change
}

// TransferLeader asks for another leader.
type TransferLeader struct {
	Proposer int
	Request  uint64
	To       string
}

// Read asks up to which transaction all was committed that anybody can have seen:
// the Answer's TransactionID. Who has applied that answers linearizable reads.
type Read struct {
	Proposer int
	Request  uint64
}

// Answer ends a request.
type Answer struct {
	Proposer      int
	Request       uint64
	TransactionID uint64 // of a Read
	fsm.Applied
}

// Answers is how a Processor sends along its edges to its controller.
type Answers interface {
	MasterInfo(MasterInfo)
	NextEntry(NextEntry)
	Answer(Answer)
}

// PeerAnswers is besides how it sends to other nodes, where the controller carries
// that.
type PeerAnswers interface {
	RequestVote(RequestVote)
	ResponseVote(ResponseVote)
	Masterbeat(Masterbeat)
	FollowerResponse(FollowerResponse)
	InstallSnapshot(InstallSnapshot)
}

// Processor is the RAFT core of rast.md 2.16 as a processor of a topology: what
// `kind: raft` is. It keeps transactions, and its controller applies them.
// Generated code calls it.
type Processor struct {
	machine   *Machine[walList, walUpdate, struct{}]
	transport *controllerTransport // nil: the nodes talk by a transport
	host      fsm.Host

	mu      sync.Mutex
	answers []any // not sent yet: each is owed
	waiting []int // instances of the controller that wait for an entry
	marked  uint64
}

// NewProcessor makes one. Start starts it.
func NewProcessor(c Config) (*Processor, error) {
	p := new(Processor)
	if c.Carried {
		p.transport = &controllerTransport{node: c.Node, wake: func() { p.host.Wake() }}
		c.Transport = p.transport
	}
	var err error
	p.machine, err = New(c, walDefinition)
	return p, err
}

// Start opens the log and begins to talk to the others.
func (p *Processor) Start(ctx context.Context, host fsm.Host) error {
	if host.Stepped() {
		return errors.New("raft: a processor of kind raft does not run under a Stepper: its node has goroutines of its own")
	}
	p.host = host
	if err := p.machine.Start(ctx, host); err != nil {
		return err
	}
	p.machine.node.onApply(host.Wake)
	return nil
}

// Close stops it.
func (p *Processor) Close() error { return p.machine.Close() }

// Machine gives what a Machine offers from outside: Status, Leader and so on.
func (p *Processor) Machine() *Machine[walList, walUpdate, struct{}] { return p.machine }

// Status is what the node knows.
func (p *Processor) Status() Status { return p.machine.Status() }

// put keeps an answer for the next turn, from any goroutine.
func (p *Processor) put(v any) {
	p.mu.Lock()
	p.answers = append(p.answers, v)
	p.mu.Unlock()
	p.host.Wake()
}

// pledge is a Waiter of a request of the controller.
type controllerWaiter struct {
	p      *Processor
	answer Answer
	read   bool
	slot   bool
}

func (w *controllerWaiter) proposed(uint64) {}

// Done is called on the node's goroutine.
func (w *controllerWaiter) Done(a fsm.Applied) {
	m := w.p.machine
	if w.slot {
		m.node.proposalSlots.give()
	}
	w.answer.Applied = a
	if w.read {
		m.node.state.RLock() // ReceiveMarkApplied changes it
		m.machine.View(func(l *walList) { w.answer.TransactionID = l.last() })
		m.node.state.RUnlock()
	}
	w.p.put(w.answer)
}

// ReceiveMasterCommit proposes a transaction.
func (p *Processor) ReceiveMasterCommit(ctx context.Context, m *MasterCommit) error {
	p.host.Owe()
	n, err := p.machine.running()
	if err != nil {
		return err
	}
	w := &controllerWaiter{p: p, answer: Answer{Proposer: m.Proposer, Request: m.Request}, slot: true}
	if len(m.Data) > updateBytesMax {
		w.slot = false
		w.Done(fsm.Applied{Err: fsm.ErrTooLarge})
		return nil
	}
	if err := n.acquire(ctx); err != nil {
		return err
	}
	return n.put(func(b *inbox) { b.proposals = append(b.proposals, proposal{Update, m.Data, w}) })
}

// ReceiveRead asks the majority up to where a read has to wait.
func (p *Processor) ReceiveRead(_ context.Context, m *Read) error {
	p.host.Owe()
	n, err := p.machine.running()
	if err != nil {
		return err
	}
	w := &controllerWaiter{p: p, answer: Answer{Proposer: m.Proposer, Request: m.Request}, read: true}
	return n.put(func(b *inbox) { b.reads = append(b.reads, pendingRead{w: w}) })
}

// ReceiveGetMasterInfo answers with what is known of the leader.
func (p *Processor) ReceiveGetMasterInfo(_ context.Context, m *GetMasterInfo) error {
	p.host.Owe()
	info := MasterInfo{Proposer: m.Proposer}
	if n, err := p.machine.running(); err == nil {
		s := n.status.Load()
		info.IsMaster, info.Master, info.Term = s.Role == "leader", s.Leader, s.Term
	}
	if err := p.machine.Stale(func(l *walList) { info.TransactionID = l.last() }); err != nil {
		return err
	}
	p.put(info)
	return nil
}

// ReceiveGetNextEntry answers with the next transaction, when there is one.
func (p *Processor) ReceiveGetNextEntry(_ context.Context, m *GetNextEntry) error {
	p.mu.Lock()
	p.waiting = append(p.waiting, m.Proposer)
	p.mu.Unlock()
	p.host.Wake()
	return nil
}

// ReceiveMarkApplied moves the cursor, and lets go of what the controller's state
// holds.
func (p *Processor) ReceiveMarkApplied(_ context.Context, m *MarkApplied) error {
	n, err := p.machine.running()
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.marked = max(p.marked, m.TransactionID)
	p.mu.Unlock()
	if m.State != nil {
		n.state.Lock()
		p.machine.machine.View(func(l *walList) { l.forget(m.TransactionID, m.State) })
		n.state.Unlock()
	}
	p.host.Wake()
	return nil
}

// changeTimeout is how long a change waits for new members, which no controller can end:
// a node is started before it is added, and no other change is made meanwhile.
const changeTimeout = time.Minute

// ReceiveChangeMembers changes the members.
func (p *Processor) ReceiveChangeMembers(_ context.Context, m *ChangeMembers) error {
	w := &controllerWaiter{p: p, answer: Answer{Proposer: m.Proposer, Request: m.Request}}
	return p.call(func(*Core) error {
		p.machine.node.changeMembers(m.Changes, changeTimeout, func() bool { return true }, w)
		return nil
	}, w)
}

// ReceiveTransferLeader asks for another leader; the answer says that it was asked.
func (p *Processor) ReceiveTransferLeader(_ context.Context, m *TransferLeader) error {
	w := &controllerWaiter{p: p, answer: Answer{Proposer: m.Proposer, Request: m.Request}}
	return p.call(func(c *Core) error {
		to, _ := c.members.named(m.To)
		err := c.TransferLeader(to.ID)
		if err == nil {
			w.Done(fsm.Applied{})
		}
		return err
	}, w)
}

// call has a function called on the node's goroutine; its error is the answer.
func (p *Processor) call(call func(*Core) error, w *controllerWaiter) error {
	p.host.Owe()
	n, err := p.machine.running()
	if err != nil {
		return err
	}
	return n.put(func(b *inbox) {
		b.calls = append(b.calls, func(c *Core) {
			if err := call(c); err != nil {
				w.Done(fsm.Applied{Err: err})
			}
		})
	})
}

// Those of other nodes, where the controller carries them.

func (p *Processor) ReceiveRequestVote(_ context.Context, m *RequestVote) error { return p.deliver(m) }
func (p *Processor) ReceiveResponseVote(_ context.Context, m *ResponseVote) error {
	return p.deliver(m)
}
func (p *Processor) ReceiveMasterbeat(_ context.Context, m *Masterbeat) error { return p.deliver(m) }

func (p *Processor) ReceiveFollowerResponse(_ context.Context, m *FollowerResponse) error {
	return p.deliver(m)
}

func (p *Processor) ReceiveInstallSnapshot(_ context.Context, m *InstallSnapshot) error {
	return p.deliver(m)
}

func (p *Processor) deliver(m any) error {
	if p.transport == nil {
		return errors.New("raft: the nodes of this group use a transport; their controllers must not carry messages")
	}
	if err := p.transport.deliver(m); !errors.Is(err, ErrMessage) {
		return err
	}
	return nil // a peer's fault
}

// Answer sends what is there to be sent. It returns the error that has ended the
// node.
func (p *Processor) Answer(to Answers) error {
	if p.transport != nil {
		p.sendCarried(to)
	}
	p.mu.Lock()
	list := p.answers
	p.answers = nil
	p.mu.Unlock()
	for _, v := range list {
		switch v := v.(type) {
		case Answer:
			to.Answer(v)
		case MasterInfo:
			to.MasterInfo(v)
		}
		p.host.Paid()
	}
	n := p.machine.node
	if err := n.Err(); err != nil {
		return err
	}
	p.sendNextEntry(to)
	return nil
}

// next answers who waits for an entry.
func (p *Processor) sendNextEntry(to Answers) {
	p.mu.Lock()
	asking, after := p.waiting, p.marked
	p.mu.Unlock()
	if len(asking) == 0 {
		return
	}
	e := NextEntry{TransactionID: after + 1}
	_ = p.machine.Stale(func(l *walList) {
		switch {
		case after >= l.last():
			e.TransactionID = 0
		case after < l.base:
			e.TransactionID, e.State = l.base, slices.Clone(l.state)
		default:
			e.Data = slices.Clone(l.list[after-l.base]) // the controller's own
		}
	})
	if e.TransactionID == 0 {
		return
	}
	p.mu.Lock()
	p.waiting = nil
	p.mu.Unlock()
	for _, e.Proposer = range asking {
		to.NextEntry(e)
	}
}

// carry hands over what is for other nodes.
func (p *Processor) sendCarried(to Answers) {
	out, ok := to.(PeerAnswers)
	if !ok {
		return
	}
	for _, v := range p.transport.drain() {
		switch v := v.(type) {
		case *RequestVote:
			out.RequestVote(*v)
		case *ResponseVote:
			out.ResponseVote(*v)
		case *Masterbeat:
			out.Masterbeat(*v)
		case *FollowerResponse:
			out.FollowerResponse(*v)
		case *InstallSnapshot:
			out.InstallSnapshot(*v)
		}
	}
}
