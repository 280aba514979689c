//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/raft"
)

const (
	changeTime = time.Minute      // for removing or adding a node, over several elections
	lostTime   = 30 * time.Second // for a node to notice that its disk was emptied: three election timeouts with a leader
)

// operators simulate the operators and failures of a bank. Each takes one node at a
// time.
type operators struct {
	t       *testing.T
	cluster *cluster
	watch   *watch

	mu                                       sync.Mutex
	busy                                     map[*node]bool
	kills, stops, wipes, lost, removes, asks int
}

// TestKillsAndWipes kills, stops, wipes, removes and adds nodes of five under load, two
// at a time: no acknowledged update is lost or applied twice, and the history is
// linearizable.
func TestKillsAndWipes(t *testing.T) {
	speed.Landing(t)
	c := demo(t, 5, false)
	o := &operators{t: t, cluster: c, busy: map[*node]bool{}}
	errs := make(chan error, 2)
	work := func(first func(context.Context, *node) error) func(context.Context, *watch) error {
		return func(ctx context.Context, w *watch) error {
			err := o.work(ctx, w, first)
			errs <- err
			return err
		}
	}
	w, err := watchCluster(t.Context(), &screen{out: t.Output()}, c, options{nodes: 5, runFor: duration(t), clients: 2}, work(o.wipe), work(o.pause))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if n := w.load.unknown.Load(); n > 0 {
		t.Errorf("the outcome of %d transfers is unknown", n)
	}
	if o.wipes == 0 || o.stops == 0 || w.checker.operations < 100 {
		t.Errorf("%d wipes, %d stops, %d operations", o.wipes, o.stops, w.checker.operations)
	}
	t.Logf("%d killed, %d stopped, %d wiped (%d of them restarted with the empty disk), %d removed and added again; %d changes requested",
		o.kills, o.stops, o.wipes, o.lost, o.removes, o.asks)
}

// work disturbs nodes until ctx ends, and completes what it has started.
func (o *operators) work(ctx context.Context, w *watch, first func(context.Context, *node) error) error {
	o.mu.Lock()
	o.watch = w
	o.mu.Unlock()
	next := first
	for ctx.Err() == nil {
		n := o.take()
		err := next(context.WithoutCancel(ctx), n)
		o.give(n)
		if err != nil {
			return fmt.Errorf("%s: %w", n.name, err)
		}
		pause(ctx, rand.N(500*time.Millisecond))
		all := []func(context.Context, *node) error{o.kill, o.kill, o.pause, o.pause, o.wipe, o.remove}
		next = all[rand.IntN(len(all))]
	}
	return nil
}

// take returns a node that no other operator has.
func (o *operators) take() *node {
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		if n := o.cluster.nodes[rand.IntN(len(o.cluster.nodes))]; !o.busy[n] {
			o.busy[n] = true
			return n
		}
	}
}

func (o *operators) give(n *node) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.busy, n)
}

// record counts and prints an event.
func (o *operators) record(count *int, format string, a ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	*count++
	o.watch.logEvent(format, a...)
}

// kill kills a node and starts it again.
func (o *operators) kill(ctx context.Context, n *node) error {
	o.record(&o.kills, "%s is killed", n.name)
	n.kill()
	pause(ctx, rand.N(time.Second))
	return o.cluster.start(ctx, n)
}

// pause stops a process and lets it continue later.
func (o *operators) pause(ctx context.Context, n *node) error {
	o.record(&o.stops, "%s is stopped", n.name)
	n.mu.Lock()
	pid := n.process.Process.Pid
	n.mu.Unlock()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return err
	}
	pause(ctx, rand.N(2*time.Second))
	return syscall.Kill(pid, syscall.SIGCONT)
}

// wipe kills a node and empties its disk. In half of the cases it restarts the node at
// once with the empty disk, and the node must refuse to run. Then the node is removed,
// started and added again.
func (o *operators) wipe(ctx context.Context, n *node) error {
	o.record(&o.wipes, "%s loses its disk", n.name)
	n.kill()
	if err := os.RemoveAll(o.folder(n)); err != nil {
		return err
	}
	if rand.IntN(2) == 0 {
		if err := o.restartEmpty(ctx, n); err != nil {
			return err
		}
	}
	if err := o.change(ctx, n, raft.Remove, 0); err != nil {
		return err
	}
	return o.add(ctx, n)
}

// restartEmpty starts a node with an emptied disk, and waits until it has ended.
func (o *operators) restartEmpty(ctx context.Context, n *node) error {
	o.record(&o.lost, "%s is started with an empty disk", n.name)
	if err := o.cluster.tryStart(ctx, n); err != nil {
		return err
	}
	n.mu.Lock()
	n.stopExpected = true // the end is expected
	exited := n.exited
	n.mu.Unlock()
	select {
	case <-exited:
	case <-time.After(lostTime):
		return errors.New("the node runs with an empty disk")
	}
	if words := o.cluster.lastLogLine(n); !strings.Contains(words, "was emptied or exchanged") {
		return fmt.Errorf("with an empty disk the last log line is: %s", words)
	}
	return nil
}

// remove removes a running node, which then ends, and adds it again with an empty disk.
func (o *operators) remove(ctx context.Context, n *node) error {
	o.record(&o.removes, "%s is removed", n.name)
	n.mu.Lock()
	n.stopExpected = true // the node ends when it learns of its removal
	n.mu.Unlock()
	if err := o.change(ctx, n, raft.Remove, 0); err != nil {
		return err
	}
	n.kill() // if it has not ended
	return o.add(ctx, n)
}

// add starts a node with an empty disk and adds it, first as a learner.
func (o *operators) add(ctx context.Context, n *node) error {
	if err := os.RemoveAll(o.folder(n)); err != nil {
		return err
	}
	if err := o.cluster.start(ctx, n); err != nil {
		return err
	}
	var id uint64
	soon, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := await(soon, "node that listens", func() bool {
		r, err := o.operate(soon, o.address(n), raft.Command{Do: "status"})
		if err == nil && len(r.Groups) > 0 {
			id = r.Groups[0].ID
		}
		return id != 0
	}); err != nil {
		return err
	}
	if err := o.change(ctx, n, raft.AddLearner, id); err != nil {
		return err
	}
	return o.change(ctx, n, raft.Promote, id)
}

// change requests a change of a node from the leader until the leader's members show
// it.
func (o *operators) change(ctx context.Context, n *node, kind raft.ChangeKind, id uint64) error {
	ctx, cancel := context.WithTimeout(ctx, changeTime)
	defer cancel()
	var last error
	for pause(ctx, 20*time.Millisecond) {
		leader, members := o.leader(ctx)
		if leader == "" {
			continue
		}
		if applied(members, n.name, kind, id) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.watch.logEvent("%s: %s", n.name, [...]string{raft.AddLearner: "is a learner", raft.Promote: "is a voter", raft.Remove: "is not a member"}[kind])
			return nil
		}
		o.mu.Lock()
		o.asks++
		o.mu.Unlock()
		_, last = o.operate(ctx, leader, raft.Command{Do: "change", Changes: []raft.Change{{Kind: kind, Name: n.name, Address: o.address(n)}}})
	}
	return fmt.Errorf("change %d was not made within %v: %w", kind, changeTime, last)
}

// applied reports whether a change of a node was made.
func applied(members []raft.MemberStatus, name string, kind raft.ChangeKind, id uint64) bool {
	for _, m := range members {
		switch {
		case m.Name != name:
		case kind == raft.Remove:
			return false
		default:
			return m.ID == id && (kind == raft.AddLearner || !m.Learner)
		}
	}
	return kind == raft.Remove
}

// leader returns the address of the leader with the latest term, and its members.
func (o *operators) leader(ctx context.Context) (address string, members []raft.MemberStatus) {
	term := uint64(0)
	for _, n := range o.cluster.nodes {
		if n.serves() == "" {
			continue
		}
		r, err := o.operate(ctx, o.address(n), raft.Command{Do: "status"})
		if err != nil || len(r.Groups) == 0 {
			continue
		}
		if g := r.Groups[0]; g.Role == "leader" && g.Term > term {
			address, term, members = o.address(n), g.Term, g.Members
		}
	}
	return address, members
}

// operate sends a command to a node. The timeout is short, because the node may be
// stopped.
func (o *operators) operate(ctx context.Context, address string, c raft.Command) (raft.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return raft.Operate(ctx, address, nil, c)
}

// address returns the address of a node for its peers.
func (o *operators) address(n *node) string {
	for _, v := range n.environ {
		list, ok := strings.CutPrefix(v, raft.VariablePeers+"=")
		if !ok {
			continue
		}
		for pair := range strings.SplitSeq(list, ",") {
			if address, ok := strings.CutPrefix(pair, n.name+"="); ok {
				return address
			}
		}
	}
	return ""
}

// folder returns the folder of a node's log.
func (o *operators) folder(n *node) string { return filepath.Join(o.cluster.dir, "ledger", n.name) }
