package pairs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/runtime/cluster"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/topo"
	"github.com/topogen/topogen/runtime/transport"
)

// NodeFault is what happens to a node at a random event of a run.
type NodeFault string

const (
	NoFault NodeFault = ""
	StopAll NodeFault = "stop"  // all nodes are stopped
	Leave   NodeFault = "leave" // the node is stopped, and its next process starts
	Cut     NodeFault = "cut"   // the node reaches no other node for a while
	Crash   NodeFault = "crash" // the node reaches no other node any more, its Run ends, and its next process starts
)

// perNode is the number of instances of a processor on a node.
const perNode = 3

// OnNode returns an instance of a processor that is on every node, with an index that no other node
// has.
func OnNode(node int, in topo.Instance) topo.Instance {
	in.Index += node * perNode
	return in
}

func nodeName(i int) string { return fmt.Sprint("n", i+1) }

// NodeOf returns the node to which a message goes.
func NodeOf(id, nodes int) string { return nodeName(id / 2 % nodes) }

const (
	cutMax     = 20 * time.Second // below the default of retry.timeout, so that no message is dropped
	nodesMax   = 10 * time.Minute // after this time the nodes are stopped
	aloneMax   = time.Minute      // after this time a process is stopped for which no other node runs
	lookEvery  = time.Second
	afterwards = time.Minute // memberlist goes on for so long after the end of its node
)

// fleet are the nodes of a run.
type fleet struct {
	c      Case
	r      Run
	memory *transport.Memory
	dir    string

	mu        sync.Mutex
	processes []*nodeProcess
	failed    []error // to start processes
	faulting  bool    // fault runs
	running   sync.WaitGroup
}

// nodeProcess is a process of a node: a topology with this node.
type nodeProcess struct {
	node    int
	top     Topology
	cancel  context.CancelFunc
	ended   chan struct{}
	err     error // of Run
	crashed bool
	again   bool // it is not the first process of its node
	alone   bool // it was stopped because all other nodes had ended
}

func (p *nodeProcess) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// CheckNodes runs a case on several nodes and compares the ledger with the figures of all of them.
func CheckNodes(t *testing.T, c Case, r Run) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		dir := memdir.New(t)
		t.Setenv(raft.VariableDir, dir)
		begin(t, Plan{Failure: r.Failure, Place: r.Place, Method: r.Method, Slow: r.Failure.IsHang()})
		released, hangStepper, onEvent = make(chan struct{}), nil, nil
		f := &fleet{c: c, r: r, memory: transport.NewMemory(transport.MemoryOptions{}), dir: dir}
		stuck := f.run()
		close(released)
		time.Sleep(afterwards)
		events, err := read()
		if err = errors.Join(append(f.failed, err)...); err != nil {
			t.Fatal(err)
		}
		problems := f.examine(events)
		if c.Recovered != nil {
			problems = append(problems, c.compareState(f.r, events, nil, false)...)
		}
		if stuck {
			problems = append(problems, "the nodes did not finish")
		}
		for _, problem := range problems[:min(len(problems), problemsMax)] {
			t.Error(problem)
		}
		if len(problems) > 0 {
			t.Logf("%s, %v", c.Name, r)
			for _, p := range f.processes {
				t.Logf("%s (again %v, crashed %v) returned %v after %v", nodeName(p.node), p.again, p.crashed, p.err, p.top.Snapshot().Elapsed)
				for _, e := range p.top.Snapshot().Edges {
					t.Logf("\t%s: %d sent, %d received, %d dropped, %d queued", edgeName(e), e.Sent, e.Received, e.Dropped, e.Len)
				}
			}
		}
	})
}

func (c Case) nodes() int {
	n, _ := strconv.Atoi(c.Options["nodes"])
	return n
}

// run runs all nodes to their end. It reports whether they had to be stopped.
func (f *fleet) run() (stuck bool) {
	var once sync.Once
	if after := f.r.stopAfter(); f.r.Fault != NoFault {
		onEvent = append(onEvent, func(n int64) {
			if n > after {
				once.Do(func() {
					f.setFaulting(true)
					f.running.Go(func() {
						defer f.setFaulting(false)
						f.fault()
					})
				})
			}
		})
	}
	for i := range f.c.nodes() {
		f.start(i, false)
	}
	stuck = f.await()
	f.running.Wait()
	return stuck
}

func (f *fleet) setFaulting(yes bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faulting = yes
}

// start starts a process of a node.
func (f *fleet) start(node int, again bool) {
	name := nodeName(node)
	joined, err := f.memory.Join(name)
	p := &nodeProcess{node: node, again: again, ended: make(chan struct{})}
	var outside Outside
	if err == nil {
		p.top, outside, err = f.c.NewNode(node, pool.Node(name), pool.NodeDir(f.dir), piper.NodeTransport(joined), pool.Logger(slog.New(slog.DiscardHandler)))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.failed = append(f.failed, err)
		return
	}
	f.processes = append(f.processes, p)
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	f.running.Go(func() {
		first := 0
		if again {
			first = messages // the first process has sent those before
		}
		sendAll(context.Background(), outside, first, node*perNode, func() {})
	})
	f.running.Go(func() {
		p.err = p.top.Run(ctx)
		_ = joined.Close()
		close(p.ended)
	})
}

// await waits until all processes have ended.
func (f *fleet) await() (stuck bool) {
	alone := time.Duration(0)
	for now := time.Duration(0); ; now += lookEvery {
		time.Sleep(lookEvery)
		running, failed, over := f.look()
		switch {
		case over:
			return stuck
		case len(running) == 1 && running[0].again:
			if alone += lookEvery; alone > aloneMax {
				running[0].alone = true
				running[0].cancel()
			}
		case now > nodesMax:
			stuck = !failed // otherwise the nodes wait for the next process of the node that has failed
			for _, p := range running {
				p.cancel()
			}
		}
	}
}

// look returns the processes that run, whether one has failed, and whether the run is over.
func (f *fleet) look() (running []*nodeProcess, failed, over bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.processes {
		if !p.hasEnded() {
			running = append(running, p)
		} else if p.err != nil {
			failed = true
		}
	}
	return running, failed, len(running) == 0 && !f.faulting
}

// fault lets the node have its fault.
func (f *fleet) fault() {
	f.awaitStart()
	random := rand.New(rand.NewPCG(f.r.Seed, 2))
	node := random.IntN(f.c.nodes())
	p := f.current(node)
	switch f.r.Fault {
	case StopAll:
		for i := range f.c.nodes() {
			f.current(i).cancel()
		}
	case Cut:
		f.cut(node, true)
		time.Sleep(time.Duration(random.Int64N(int64(cutMax))))
		f.cut(node, false)
	case Crash:
		p.crashed = true
		f.cut(node, true)
		fallthrough
	case Leave:
		p.cancel()
		<-p.ended
		f.cut(node, false)
		if f.othersRun(node) {
			f.start(node, true)
		}
	}
}

// awaitStart waits until all nodes run, or one has ended. A node that is stopped before returns an
// error.
func (f *fleet) awaitStart() {
	for i := range f.c.nodes() {
		for p := f.current(i); !p.hasEnded(); time.Sleep(time.Millisecond) {
			if v := p.top.(interface{ Cluster() *cluster.View }).Cluster(); v != nil && v.State == "running" {
				break
			}
		}
	}
}

func (f *fleet) current(node int) (p *nodeProcess) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, q := range f.processes {
		if q.node == node {
			p = q
		}
	}
	return p
}

func (f *fleet) othersRun(node int) bool {
	for i := range f.c.nodes() {
		if i != node && f.current(i).hasEnded() {
			return false
		}
	}
	return true
}

// cut cuts or restores all links of a node.
func (f *fleet) cut(node int, cut bool) {
	for i := range f.c.nodes() {
		f.memory.Cut(nodeName(node), nodeName(i), cut)
		f.memory.Cut(nodeName(i), nodeName(node), cut)
	}
}

// result returns the error with which the topology has ended: that of a handler rather than that of
// a node that was told about it.
func (f *fleet) result() (err error) {
	for _, p := range f.processes {
		if p.crashed || p.alone || p.err == nil || err != nil && isConsequence(p.err) {
			continue
		}
		if isPlanned(p.err) {
			return p.err // the other nodes may not have drained because of it
		}
		if err == nil || isConsequence(err) {
			err = p.err
		}
	}
	return err
}

// isConsequence reports whether another node has failed, and this one was told, or could not join any
// more and was stopped.
func isConsequence(err error) bool {
	return errors.Is(err, cluster.ErrNodeFailed) || errors.Is(err, context.Canceled)
}
