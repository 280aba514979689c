package grpc

import (
	"errors"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Reasons why a node refuses a process. The errors of attempts to connect match them.
var (
	// ErrHeld means that another process of the node is alive.
	ErrHeld = errors.New("another process has the name of the node")
	// ErrSuperseded means that another process has taken the name of the node after this one.
	ErrSuperseded = errors.New("a newer process has the name of the node")
)

// Refusal says why a process is refused.
type Refusal struct {
	Kind error // ErrHeld or ErrSuperseded; nil: another reason
	Text string
}

func (r *Refusal) Error() string { return r.Text }
func (r *Refusal) Unwrap() error { return r.Kind }

// Process is one start of a node, as its hello describes it.
type Process struct {
	Node    string
	Boot    uint64
	Entered uint64 // position of its entry in the list of nodes that all nodes share; 0: it has none
	Address string // to dial it; "": not announced
}

// Identity decides which process of a node may be connected. Any goroutine may call it.
type Identity interface {
	// Own returns the boot id of this process, and the position of its entry; 0: it has none.
	Own() (boot, entered uint64)

	// Admit returns nil if a process may be connected: then the connections of another process
	// of the node end, which is connected now; nil: none. An error should match ErrHeld or ErrSuperseded. The
	// process gets it.
	Admit(p Process, connected *Connected) error

	// Tried is called after each attempt to connect to a peer. err is nil if the peer has
	// accepted this process.
	Tried(peer string, err error)
}

// firstConnected is the Identity without a list of nodes: the first process that is connected
// has the name, until its connections have ended.
type firstConnected struct{ boot uint64 }

func (i firstConnected) Own() (boot, entered uint64)               { return i.boot, 0 }
func (firstConnected) Admit(_ Process, connected *Connected) error { return connected.Held() }
func (firstConnected) Tried(string, error)                         {}

// Connected is a process that is connected.
type Connected struct {
	Process
	From  net.Addr
	Since time.Time // of its newest stream
}

// process is a process that is connected as a peer. The transport's lock protects its fields.
type process struct {
	Connected
	streams int           // open streams
	ended   chan struct{} // closed when it may not be connected any more
	why     error         // valid after ended
}

// Held returns the refusal of other processes of the node while this one is connected; nil: none is.
func (p *Connected) Held() error {
	if p == nil {
		return nil
	}
	return &Refusal{ErrHeld, fmt.Sprintf("another process is connected as %q, from %s, since %s: two processes use the same identity, or the other is about to end",
		p.Node, p.From, p.Since.UTC().Format(time.RFC3339))}
}

// process returns the sender of a hello that has come from an address.
func (h *hello) process(from net.Addr) Process {
	return Process{Node: h.node, Boot: h.incarnation, Entered: h.entered, Address: h.dialAddress(from)}
}

// admits returns an error if a process may not be connected. other is the connected process of the
// node, or nil. The lock must not be held.
func (t *Transport) admits(p Process) (other *process, err error) {
	var connected *Connected
	t.mu.RLock()
	if peer := t.peers[p.Node]; peer != nil && peer.process != nil {
		if other = peer.process; other.Boot != p.Boot {
			connected = new(other.Connected)
		}
	}
	t.mu.RUnlock()
	return other, t.config.Identity.Admit(p, connected)
}

// isSuperseded returns why a process may not be connected any more, or nil.
func (t *Transport) isSuperseded(p Process) error {
	if err := t.config.Identity.Admit(p, nil); errors.Is(err, ErrSuperseded) {
		return err
	}
	return nil
}

// end ends the connections of the process of a peer. The lock must be held. It returns a function that
// must be called without it: frames of the process are not handled any more when that has returned.
func (p *peer) end(why error) (drop func()) {
	p.process.why = why
	close(p.process.ended)
	p.process = nil
	next := p.streamsTotal + 1
	return func() {
		p.receiving.Lock()
		defer p.receiving.Unlock()
		p.newest = max(p.newest, next)
	}
}

// Recheck asks Config.Identity again about all connected processes. It ends the connections of
// superseded processes.
func (t *Transport) Recheck() {
	t.mu.RLock()
	connected := map[*process]Process{}
	for _, p := range t.peers {
		if p.process != nil {
			connected[p.process] = p.process.Process
		}
		if p.link != nil {
			p.link.recheck.notify()
		}
	}
	t.mu.RUnlock()
	for c, p := range connected {
		if err := t.isSuperseded(p); err != nil {
			t.endProcess(p.Node, c, err)
		}
	}
}

func (t *Transport) endProcess(node string, c *process, why error) {
	t.mu.Lock()
	drop := func() {}
	if p := t.peers[node]; p != nil && p.process == c {
		drop = p.end(why)
		t.forget(p)
	}
	t.mu.Unlock()
	drop()
}

// refusalCodes are the codes of gRPC that tell a process why it is refused.
var refusalCodes = []struct {
	error
	codes.Code
}{{ErrHeld, codes.AlreadyExists}, {ErrSuperseded, codes.Aborted}}

// refusalStatus returns the status for a process that is refused.
func refusalStatus(err error) error {
	for _, c := range refusalCodes {
		if errors.Is(err, c.error) {
			return status.Error(c.Code, err.Error())
		}
	}
	return status.Error(codes.ResourceExhausted, err.Error())
}

// wrongProcess is the error of a dialler that has reached a process which this node refuses. It does not
// match the errors of a peer that refuses this process.
func wrongProcess(why error) error { return fmt.Errorf("reached the wrong process: %v", why) }

// asRefusal returns the error of a refusal by a peer.
func asRefusal(code codes.Code, text string) error {
	r := &Refusal{Text: text}
	for _, c := range refusalCodes {
		if c.Code == code {
			r.Kind = c.error
		}
	}
	return fmt.Errorf("%w: %w", errRefused, r)
}
