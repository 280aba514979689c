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

	"github.com/topogen/topogen/runtime/raft"
)

const (
	changeTime = time.Minute      // for a node to be removed or added, over several elections
	lostTime   = 30 * time.Second // for a node to notice that its disk was emptied: three election timeouts with a leader
)

// operators do to a bank what people and machines do: each takes one node at a time.
type operators struct {
	t       *testing.T
	cluster *cluster
	watch   *watch

	mu                                       sync.Mutex
	busy                                     map[*node]bool
	kills, stops, wipes, lost, removes, asks int
}

// TestKillsAndWipes kills, stops, wipes, removes and adds nodes of five under load, two at
// a time: no update that was acknowledged is lost or done twice, and all is linearizable.
func TestKillsAndWipes(t *testing.T) {
	last := 3 * time.Second
	if os.Getenv("TOPOGEN_BANK") != "" {
		last = lasts(t)
	}
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
	w, err := watchCluster(t.Context(), &screen{out: t.Output()}, c, options{nodes: 5, last: last, clients: 2}, work(o.wipe), work(o.pause))
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
	if o.wipes == 0 || o.stops == 0 || w.verdict.operations < 100 {
		t.Errorf("%d wipes, %d stops, %d operations", o.wipes, o.stops, w.verdict.operations)
	}
	t.Logf("%d killed, %d stopped, %d wiped, of which %d were started as if they had not been, %d removed and added again; %d changes were asked for",
		o.kills, o.stops, o.wipes, o.lost, o.removes, o.asks)
}

// work goes on until ctx ends, and finishes what it has begun.
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

// take takes a node that no one else has.
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

// did counts and tells.
func (o *operators) did(count *int, format string, a ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	*count++
	o.watch.tell(format, a...)
}

// kill kills a node, and starts it again.
func (o *operators) kill(ctx context.Context, n *node) error {
	o.did(&o.kills, "%s is killed", n.name)
	n.kill()
	pause(ctx, rand.N(time.Second))
	return o.cluster.start(ctx, n)
}

// pause stops a process, and has it go on.
func (o *operators) pause(ctx context.Context, n *node) error {
	o.did(&o.stops, "%s is stopped", n.name)
	n.mu.Lock()
	pid := n.process.Process.Pid
	n.mu.Unlock()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return err
	}
	pause(ctx, rand.N(2*time.Second))
	return syscall.Kill(pid, syscall.SIGCONT)
}

// wipe kills a node and empties its disk. In half of the cases it is started at once,
// and must end; then it is removed, started and added again.
func (o *operators) wipe(ctx context.Context, n *node) error {
	o.did(&o.wipes, "%s loses its disk", n.name)
	n.kill()
	if err := os.RemoveAll(o.folder(n)); err != nil {
		return err
	}
	if rand.IntN(2) == 0 {
		if err := o.lose(ctx, n); err != nil {
			return err
		}
	}
	if err := o.change(ctx, n, raft.Remove, 0); err != nil {
		return err
	}
	return o.add(ctx, n)
}

// lose starts a node on a disk that was emptied, and waits until it has ended.
func (o *operators) lose(ctx context.Context, n *node) error {
	o.did(&o.lost, "%s is started with an empty disk", n.name)
	if err := o.cluster.tryStart(ctx, n); err != nil {
		return err
	}
	n.mu.Lock()
	n.told = true // that it ends is right
	exited := n.exited
	n.mu.Unlock()
	select {
	case <-exited:
	case <-time.After(lostTime):
		return errors.New("it goes on with an empty disk")
	}
	if words := o.cluster.lastWords(n); !strings.Contains(words, "was emptied or exchanged") {
		return fmt.Errorf("with an empty disk it ends with: %s", words)
	}
	return nil
}

// remove removes a node that runs, which ends, and adds it again with an empty disk.
func (o *operators) remove(ctx context.Context, n *node) error {
	o.did(&o.removes, "%s is removed", n.name)
	n.mu.Lock()
	n.told = true // it hears of it, and ends
	n.mu.Unlock()
	if err := o.change(ctx, n, raft.Remove, 0); err != nil {
		return err
	}
	n.kill() // unless it has ended
	return o.add(ctx, n)
}

// add starts a node with an empty disk and adds it, first without a vote.
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

// change asks the leader for a change of a node, until the leader's members are so.
func (o *operators) change(ctx context.Context, n *node, kind raft.ChangeKind, id uint64) error {
	ctx, cancel := context.WithTimeout(ctx, changeTime)
	defer cancel()
	var last error
	for pause(ctx, 20*time.Millisecond) {
		leader, members := o.leader(ctx)
		if leader == "" {
			continue
		}
		if made(members, n.name, kind, id) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.watch.tell("%s: %s", n.name, [...]string{raft.AddLearner: "is a learner", raft.Promote: "is a voter", raft.Remove: "is not a member"}[kind])
			return nil
		}
		o.mu.Lock()
		o.asks++
		o.mu.Unlock()
		_, last = o.operate(ctx, leader, raft.Command{Do: "change", Changes: []raft.Change{{Kind: kind, Name: n.name, Address: o.address(n)}}})
	}
	return fmt.Errorf("change %d is not made within %v: %w", kind, changeTime, last)
}

// made reports whether a change of a node is made.
func made(members []raft.MemberStatus, name string, kind raft.ChangeKind, id uint64) bool {
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

// leader is where the leader of the latest term is reached, and whom it has as members.
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

// operate gives a node an order. It does not wait long, since the node may be stopped.
func (o *operators) operate(ctx context.Context, address string, c raft.Command) (raft.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return raft.Operate(ctx, address, nil, c)
}

// address is where the others reach a node.
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

// folder is that of a node's log.
func (o *operators) folder(n *node) string { return filepath.Join(o.cluster.dir, "ledger", n.name) }
