package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/internal/test/loopback"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/cluster/table"
	tableraft "github.com/topogen/topogen/runtime/cluster/table/raft"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/transport"
)

// runs are the runs of a program on nodes that keep their folders.
type runs struct {
	t    *testing.T
	dirs []string
	open func(p *program, dir string, s piper.NodeSettings) (*Node, error)
	log  *text

	wires []transport.Transport // of processes that have not ended
}

// close closes the wires of processes that have ended.
func (r *runs) close() {
	for _, w := range r.wires {
		_ = w.Close()
	}
	r.wires = nil
}

// text is the text of a log.
type text struct {
	mu sync.Mutex
	strings.Builder
}

func (t *text) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.Builder.Write(b)
}

func (r *runs) newTop(p *program, i int) *top {
	top, err := p.newTop(func(s piper.NodeSettings) (*Node, error) { return r.open(p, r.dirs[i], s) }, piper.Node(fmt.Sprintf("n%d", i+1)), piper.Logger(slog.New(slog.NewTextHandler(r.log, nil))))
	if err != nil {
		r.t.Fatal(err)
	}
	return top
}

// file is the file of the process of a node.
func (r *runs) file(i int) string {
	return filepath.Join(r.dirs[i], fmt.Sprintf("n%d", i+1), processFile)
}

// run runs the program on all nodes, and checks that all of it has run. It returns the boot ids
// of the processes.
func (r *runs) run() (boots []table.Boot) {
	p := newProgram()
	var tops []*top
	for i := range r.dirs {
		tops = append(tops, r.newTop(p, i))
		boots = append(boots, tops[i].node.boot)
	}
	p.runAll(r.t, tops)
	r.close()
	for i := range r.dirs {
		if _, err := os.Stat(r.file(i)); err == nil {
			r.t.Errorf("node %d has ended, and the file of its process remains", i+1)
		}
	}
	return boots
}

// check runs the program, starts a node alone whose process seems to have been killed at the end, and runs the
// program again.
func (r *runs) check() {
	r.log = new(text)
	boots := r.run()
	if err := os.WriteFile(r.file(1), []byte(boots[1].String()), 0o600); err != nil {
		r.t.Fatal(err)
	}
	p := newProgram()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	if err := r.newTop(p, 1).pool.Run(ctx); err != nil || len(p.counts) > 0 {
		r.t.Errorf("the next process of n2 has ended with %v, and has handled %v; want nil and nothing", err, p.counts)
	}
	r.close()
	if !strings.Contains(r.log.String(), "topogen: the topology has finished, and the process of this node was killed") {
		r.t.Errorf("the log does not say why n2 has ended: %s", r.log.String())
	}
	r.run()
}

// runsInMemory returns the runs of three nodes, whose network and address table are in memory.
func runsInMemory(t *testing.T) *runs {
	network, tables := transport.NewMemory(transport.MemoryOptions{}), table.NewMemory()
	r := &runs{t: t, dirs: []string{t.TempDir(), t.TempDir(), t.TempDir()}}
	r.open = func(p *program, dir string, s piper.NodeSettings) (*Node, error) {
		wire, err := network.Join(s.Name)
		if err != nil {
			return nil, err
		}
		s.Transport = wire
		r.wires = append(r.wires, wire)
		return Open(p.config(len(r.dirs), dir, tables), s)
	}
	return r
}

// TestRunsInMemory runs a program twice with the same folders. In between, a node is started whose process
// was killed at the end: it ends.
func TestRunsInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runsInMemory(t)
		r.check()
	})
}

// TestRunsOnHosts is TestRunsInMemory with sockets and disks. The node that is started alone reaches no
// leader of the address table.
func TestRunsOnHosts(t *testing.T) {
	speed.Landing(t)
	t.Parallel() // it waits for other nodes
	r := &runs{t: t, dirs: []string{t.TempDir(), t.TempDir(), t.TempDir()}}
	addresses := map[string]string{}
	for i, address := range loopback.Addresses(t, len(r.dirs)) {
		addresses[fmt.Sprintf("n%d", i+1)] = address
	}
	r.open = func(p *program, dir string, s piper.NodeSettings) (*Node, error) {
		c := p.config(len(r.dirs), dir, nil)
		c.Retry.Timeout = 3 * time.Second // a busy computer takes a second to start the nodes
		c.Nodes, c.Table = addresses, func(s table.Setup) (table.Table, error) {
			return tableraft.Open(tableraft.Config{
				Topology: s.Topology, Node: s.Node, Address: s.Address, First: s.First, Plan: s.Plan,
				Dir: s.Dir, Transport: s.Transport, Gone: s.Gone, Logger: s.Logger,
				Heartbeat: 20 * time.Millisecond, ElectionTimeout: 200 * time.Millisecond,
			})
		}
		return Open(c, s)
	}
	r.check()
}

// TestKilledAfterTheEnd: a process that was killed after it knew the end ends when it starts again, although no other
// node runs. It has no majority to read the address table.
func TestKilledAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &Node{boot: 0x1234, log: slog.New(slog.DiscardHandler)}
		n.settings.Dir = t.TempDir()
		noLeader := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		for _, knew := range []bool{false, true} {
			if err := n.noteProcess(); err != nil {
				t.Fatal(err)
			}
			if knew {
				n.noteEnd()
			}
			last := &lastRun{node: "n1", patience: 30 * time.Second}
			if last.killed, last.knew = n.notedProcess(); last.killed != n.boot || last.knew != knew {
				t.Fatalf("the file says %v, %v, want %v, %v", last.killed, last.knew, n.boot, knew)
			}
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			err := last.orFinished(ctx, table.NewReplica(), noLeader)
			cancel()
			if took := time.Since(began); errors.Is(err, piper.ErrFinished) != knew || knew && took != last.patience {
				t.Errorf("knew %v: got %v after %v", knew, err, took)
			}
		}
	})
}

// TestEndIsNotedWhenItIsRead: a process that is killed after it has read the end, and before it has ended, has left a note for
// the next one.
func TestEndIsNotedWhenItIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runsInMemory(t)
		r.log = new(text)
		p := newProgram()
		var mu sync.Mutex
		ended := map[string]bool{}
		p.close = func(top *top) {
			if time.Sleep(time.Millisecond); !top.node.hasAgreedToEnd() || top.node.ending.Load() { // virtual time
				return
			}
			mu.Lock()
			defer mu.Unlock()
			ended[top.node.settings.node] = true
			if _, knew := top.node.notedProcess(); !knew {
				t.Errorf("%s has read the end, and the file of its process does not say so", top.node.settings.node)
			}
		}
		var tops []*top
		for i := range r.dirs {
			tops = append(tops, r.newTop(p, i))
		}
		p.runAll(t, tops)
		r.close()
		if len(ended) == 0 {
			t.Error("no process had read the end before it ended")
		}
	})
}
