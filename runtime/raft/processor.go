package raft

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/topogen/topogen/runtime/fsm"
)

// The messages between a Processor and its controller. The controller chooses Request,
// and gets it back in the answer.

// MasterCommit proposes a transaction. The Answer comes when the transaction is
// committed.
type MasterCommit struct {
	Proposer int // instance of the controller
	Request  uint64
	Data     []byte
}

// GetMasterInfo asks for a MasterInfo.
type GetMasterInfo struct{ Proposer int }

// MasterInfo says which leader the node knows. This is a hint, because the leader may
// have changed. A controller that needs a certain answer sends a Read.
type MasterInfo struct {
	Proposer      int
	IsMaster      bool
	Master        string // "": no leader is known
	Term          uint64
	TransactionID uint64 // of the newest transaction that is committed as far as this node knows
}

// GetNextEntry asks for the first transaction that is not marked applied. The answer
// comes when there is such a transaction.
type GetNextEntry struct{ Proposer int }

// NextEntry is a committed transaction. If State is not nil, the log does not contain the
// controller's next transaction any more. Then State is the state of another controller,
// from its MarkApplied. It replaces all transactions up to TransactionID.
type NextEntry struct {
	Proposer      int
	TransactionID uint64 // 1, 2, …
	Data          []byte
	State         []byte
}

// MarkApplied says that the controller has applied the transactions up to TransactionID,
// and will not ask for them again. After a restart the controller sends it first, with
// the transaction up to which its own storage holds the state. State is the controller's
// state after that transaction. If it is set, the log may drop the transactions; without
// State the log grows.
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

// Read asks for the newest transaction that any node can have returned as committed: the
// Answer's TransactionID. A controller that has applied this transaction can answer
// linearizable reads.
type Read struct {
	Proposer int
	Request  uint64
}

// Answer is the result of a request.
type Answer struct {
	Proposer      int
	Request       uint64
	TransactionID uint64 // of a Read
	fsm.Applied
}

// Answers sends messages of a Processor along its edges to its controller.
type Answers interface {
	MasterInfo(MasterInfo)
	NextEntry(NextEntry)
	Answer(Answer)
}

// PeerAnswers sends messages to other nodes, if the controller carries them.
type PeerAnswers interface {
	RequestVote(RequestVote)
	ResponseVote(ResponseVote)
	Masterbeat(Masterbeat)
	FollowerResponse(FollowerResponse)
	InstallSnapshot(InstallSnapshot)
}

// Processor is a Raft node as a processor of a topology, the implementation of `kind:
// raft`. It keeps a log of transactions, and its controller applies them. Generated code
// calls it.
type Processor struct {
	machine   *Machine[walList, walUpdate, struct{}]
	transport *controllerTransport // nil if the nodes use a transport
	host      fsm.Host

	mu      sync.Mutex
	answers []any // not sent yet; the pool counts each one as owed
	waiting []int // instances of the controller that wait for an entry
	marked  uint64
}

// NewProcessor makes a Processor. Start starts it.
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

// Start opens the log, and begins to exchange messages with the other nodes.
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

// Close stops the Processor.
func (p *Processor) Close() error { return p.machine.Close() }

// Machine returns the state machine of the log, for Status, Leader and other methods.
func (p *Processor) Machine() *Machine[walList, walUpdate, struct{}] { return p.machine }

// Status returns the status of the node.
func (p *Processor) Status() Status { return p.machine.Status() }

// put queues an answer for the next turn. Any goroutine may call it.
func (p *Processor) put(v any) {
	p.mu.Lock()
	p.answers = append(p.answers, v)
	p.mu.Unlock()
	p.host.Wake()
}

// controllerWaiter is the Waiter of a request of the controller.
type controllerWaiter struct {
	p      *Processor
	answer Answer
	read   bool
	slot   bool
}

func (w *controllerWaiter) proposed(uint64) {}

// Done is called on a goroutine of the node.
func (w *controllerWaiter) Done(a fsm.Applied) {
	m := w.p.machine
	if w.slot {
		m.node.proposalSlots.give()
	}
	w.answer.Applied = a
	if w.read {
		m.node.state.RLock() // ReceiveMarkApplied changes the list
		m.machine.View(func(l *walList) { w.answer.TransactionID = l.last() })
		m.node.state.RUnlock()
	}
	w.p.put(w.answer)
}

// ReceiveMasterCommit proposes a transaction.
func (p *Processor) ReceiveMasterCommit(ctx context.Context, m *MasterCommit) error {
	p.host.BeginReply()
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

// ReceiveRead asks the majority for the newest committed transaction.
func (p *Processor) ReceiveRead(_ context.Context, m *Read) error {
	p.host.BeginReply()
	n, err := p.machine.running()
	if err != nil {
		return err
	}
	w := &controllerWaiter{p: p, answer: Answer{Proposer: m.Proposer, Request: m.Request}, read: true}
	return n.put(func(b *inbox) { b.reads = append(b.reads, pendingRead{w: w}) })
}

// ReceiveGetMasterInfo answers with the leader that the node knows.
func (p *Processor) ReceiveGetMasterInfo(_ context.Context, m *GetMasterInfo) error {
	p.host.BeginReply()
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

// ReceiveMarkApplied moves the position of the controller, and drops the transactions
// that the controller's state covers.
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

// changeTimeout is how long a change waits for the ids of new members, because a
// controller cannot abandon a change. New members should run before they are added, and
// no other change is made while one waits.
const changeTimeout = time.Minute

// ReceiveChangeMembers changes the members.
func (p *Processor) ReceiveChangeMembers(_ context.Context, m *ChangeMembers) error {
	w := &controllerWaiter{p: p, answer: Answer{Proposer: m.Proposer, Request: m.Request}}
	return p.call(func(*Core) error {
		p.machine.node.changeMembers(m.Changes, changeTimeout, func() bool { return true }, w)
		return nil
	}, w)
}

// ReceiveTransferLeader starts a transfer of the leadership. The answer says that it was
// started.
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

// call calls a function on the goroutine of the node's loop, and answers with its error.
func (p *Processor) call(call func(*Core) error, w *controllerWaiter) error {
	p.host.BeginReply()
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

// The messages of other nodes, if the controller carries them.

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
	return nil // an invalid message is the fault of the peer
}

// Answer sends the answers that wait. It returns the error that has ended the node.
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
		p.host.EndReply()
	}
	n := p.machine.node
	if err := n.Err(); err != nil {
		return err
	}
	p.sendNextEntry(to)
	return nil
}

// sendNextEntry answers the instances that wait for an entry.
func (p *Processor) sendNextEntry(to Answers) {
	p.mu.Lock()
	waiting, after := p.waiting, p.marked
	p.mu.Unlock()
	if len(waiting) == 0 {
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
			e.Data = slices.Clone(l.list[after-l.base]) // the controller gets its own copy
		}
	})
	if e.TransactionID == 0 {
		return
	}
	p.mu.Lock()
	p.waiting = nil
	p.mu.Unlock()
	for _, e.Proposer = range waiting {
		to.NextEntry(e)
	}
}

// sendCarried sends the messages for other nodes.
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
