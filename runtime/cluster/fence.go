package cluster

import (
	"context"
	cryptorand "crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/member"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/piper/border"
)

// A process calls handlers while it can prove that it is the process of its node. The proof is a lease of
// the address table with the name of the node. A process enters the table only with the lease, so the next process of a
// node waits until the process before has stopped its calls: that one measures the lease from the beginning of
// the last renewal, by its own clock. Without the lease the gate of the pool is closed, see piper.Interior.
//
// Where no other process can get the name (table.Resident), or no lease has one holder (table.Lossy), the fence of
// failure detection closes the gate. With fence: off nothing does.

// ErrFenced: for longer than retry.timeout, this node could not prove that it is the node in the address table.
var ErrFenced = errors.New("cluster: this node is fenced")

// proof is what allows a node to call handlers.
type proof uint8

const (
	noProof       proof = iota // fence: off
	leaseProof                 // the lease of the name
	majorityProof              // failure detection sees a majority
)

// fence stops the calls of a node that has no proof.
type fence struct {
	node *Node
	by   proof

	mu     sync.Mutex
	lease  *table.Lease
	gate   gate        // nil until the instances have their places
	lostAt time.Time   // zero: the node has its proof
	seen   bool        // it has had it before
	limit  *time.Timer // for majorityProof: retry.timeout after the loss
}

// gate is what the fence uses of a *border.Border.
type gate interface {
	OpenGate(until time.Time)
	CloseGate()
	LookAtGate()
	Fail(err error)
	Snapshot() piper.Snapshot
}

// regainPause is the time between two attempts to get a lease that was lost.
const regainPause = 100 * time.Millisecond

// releaseTimeout is how long a node waits at its end for the release of its lease. At the end of all nodes the table
// has no majority.
const releaseTimeout = time.Second

// chooseProof chooses what the fence goes by. The table is open.
func (n *Node) chooseProof() proof {
	r, resident := n.table.(table.Resident)
	switch {
	case n.settings.Membership.Fence == member.FenceOff:
		return noProof
	case losesChanges(n.table), resident && r.Essential():
		return majorityProof
	}
	return leaseProof
}

// holder identifies this process as the holder of its lease. If the engine locks the folder, all processes with the
// folder on this host are one holder: the lock shows that the process before has ended. So a process
// that was killed and runs again waits for nothing.
func (n *Node) holder() (string, error) {
	host, err := os.ReadFile("/proc/sys/kernel/random/boot_id") // a folder may move to another host, while the former host is cut off
	if _, resident := n.table.(table.Resident); !resident || err != nil {
		return n.boot.String(), nil
	}
	folder, err := n.folderID()
	return folder + "@" + strings.TrimSpace(string(host)), err
}

// holderFile is a file in the folder of a node. It holds a random number that identifies the folder.
const holderFile = "holder"

// folderID returns the content of the file, and writes it if there is none.
func (n *Node) folderID() (string, error) {
	path := filepath.Join(n.settings.Dir, holderFile)
	if b, err := os.ReadFile(path); err == nil && len(b) > 0 {
		return strings.TrimSpace(string(b)), nil
	}
	id := cryptorand.Text()
	return id, n.writeFile(holderFile, id)
}

// acquire gets the lease of the name, unless the node has it, or needs none.
func (f *fence) acquire(ctx context.Context) error {
	n := f.node
	f.mu.Lock()
	had := f.lease
	f.mu.Unlock()
	if f.by != leaseProof || had != nil && had.Err() == nil {
		return nil
	}
	holder, err := n.holder()
	if err != nil {
		return err
	}
	for {
		l, err := n.table.Acquire(ctx, leaseName(n.settings.node), holder, n.settings.Membership.Lease())
		if err == nil {
			f.mu.Lock()
			f.lease = l
			f.mu.Unlock()
			return nil
		}
		if ctx.Err() != nil || n.table.Err() != nil {
			return fmt.Errorf("the lease of the name %q: %w", n.settings.node, err)
		}
		select {
		case <-time.After(regainPause):
		case <-ctx.Done():
		}
	}
}

// leaseName is the name of the lease of a node.
func leaseName(node string) string { return "node " + node }

// begin opens the gate as long as the node has its proof.
func (f *fence) begin(g gate) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gate = g
	switch f.by {
	case leaseProof:
		go f.keep()
	case majorityProof: // majority may be called now, and goes on after this
		if f.seen = !f.node.detector.Fenced(); !f.seen {
			g.CloseGate()
		}
	}
}

// keep keeps the gate open while the node has its lease, and gets the lease again when it is lost.
func (f *fence) keep() {
	n := f.node
	for {
		f.mu.Lock()
		l := f.lease
		f.mu.Unlock()
		l.OnRenewal(f.gate.OpenGate)
		select {
		case <-l.Done():
		case <-n.ctx.Done():
			return
		}
		f.gate.CloseGate() // another holder may have the lease before its time is over
		if errors.Is(l.Err(), table.ErrReleased) || n.table.Err() != nil {
			return
		}
		if n.hasAgreedToEnd() {
			f.gate.OpenGate(time.Time{})
			return
		}
		f.mu.Lock()
		f.lose(l.Err())
		f.mu.Unlock()
		if !f.regain() {
			return
		}
		f.mu.Lock()
		f.found()
		f.mu.Unlock()
	}
}

// regain gets the lease again, until retry.timeout has passed. It returns false if the node must end.
func (f *fence) regain() bool {
	n := f.node
	ctx, cancel := context.WithTimeout(n.ctx, n.settings.Retry.Timeout)
	defer cancel()
	err := f.acquire(ctx)
	switch {
	case err == nil && n.names.isOwner():
		return true
	case err == nil, n.table.Err() != nil: // watch ends this process: another one has its name, or the table has failed
		return false
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		f.fail()
	}
	return false
}

// lose notes that the node has lost its proof. The lock must be held.
func (f *fence) lose(why error) {
	f.lostAt = time.Now()
	level := slog.LevelWarn
	if f.node.ending.Load() { // while the nodes end together, a majority is missing in good order
		level = slog.LevelDebug
	}
	attrs := []slog.Attr{slog.String("node", f.node.settings.node)}
	if why != nil {
		attrs = append(attrs, slog.Any("error", why))
	}
	f.node.log.LogAttrs(context.Background(), level, "topogen: this node calls no handlers, because another process may take its name", attrs...)
}

// found notes that the node has its proof again. The lock must be held.
func (f *fence) found() {
	f.node.log.Info("topogen: this node calls handlers again", slog.String("node", f.node.settings.node), slog.Duration("after", time.Since(f.lostAt)))
	f.lostAt = time.Time{}
}

// isClosed reports whether the node has lost its proof.
func (f *fence) isClosed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.lostAt.IsZero()
}

// fail ends Run, because the node has had no proof for too long.
func (f *fence) fail() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lostAt.IsZero() { // the timer was too late to be stopped
		return
	}
	left := 0
	for _, e := range f.gate.Snapshot().Edges {
		left += e.Len
	}
	f.gate.Fail(&nodeError{f.node.settings.node, fmt.Errorf("%w: it has reached no majority for %v, and has called no handler in this time, because another process may have taken its name. "+
		"%d messages were in its queues and are dropped. Check the network between the nodes, and start it again", ErrFenced, time.Since(f.lostAt).Round(time.Millisecond), left)})
}

// majority is called when failure detection sees a majority, or loses it.
func (f *fence) majority(reached bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.by != majorityProof || f.gate == nil || f.node.ending.Load() || reached == (f.seen && f.lostAt.IsZero()) {
		return
	}
	first := !f.seen
	f.seen = true
	if f.limit != nil {
		f.limit.Stop()
	}
	if !reached {
		f.gate.CloseGate()
		f.lose(nil)
		f.limit = time.AfterFunc(f.node.settings.Retry.Timeout, f.fail)
		return
	}
	if !first {
		f.found()
	}
	f.gate.OpenGate(time.Time{})
}

// end releases the lease, so that the next process of the node does not wait.
func (f *fence) end() {
	f.mu.Lock()
	l := f.lease
	if f.limit != nil {
		f.limit.Stop()
	}
	f.mu.Unlock()
	if l == nil || l.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	if err := l.Release(ctx); err != nil {
		f.node.log.Debug("topogen: the lease of this node was not released and expires", slog.Any("error", err))
	}
}

// hasAgreedToEnd reports whether the nodes have agreed that all groups with instances have finished. Then no handler is
// called any more, and the others may end before this node.
func (n *Node) hasAgreedToEnd() bool {
	end, p := n.table.Replica().End(), n.core.pool
	if !end.Holds(n.settings.node, n.boot) {
		return false
	}
	for i := range p.Groups() {
		if !p.Group(i).Empty && end.Phase(i) < piper.GroupFlushing {
			return false
		}
	}
	return true
}

var _ gate = (*border.Border)(nil)
