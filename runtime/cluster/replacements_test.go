package cluster

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/member"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/transport"
)

// replacements are nodes of a program, with all their goroutines and in virtual time, whose processes are cut off, fenced, replaced and
// stopped at random. A process that was cut off comes back while the next one has its name. The address table is in memory.
type replacements struct {
	t         *testing.T
	seed      uint64
	random    *rand.Rand
	program   *program
	memory    *table.Memory
	network   *transport.Memory
	observer  table.Table
	nodes     int
	began     time.Time
	processes []*process
	log       []string

	mu      sync.Mutex
	handled map[handledMessage]int
	counts  map[string]int
}

// process is a process of a node.
type process struct {
	of       *replacements
	name     string // of the node
	wireName string // in the network
	top      *top
	stop     context.CancelFunc
	ended    chan struct{}
	err      error
	table    table.Table
	cut      bool // it reaches nothing
	wasCut   bool

	startedCut bool // it was cut off when it started
	wasStopped bool // because it had not ended
}

// handledMessage is a message and the process that has handled it.
type handledMessage struct {
	sender, receiver             table.Boot
	from, fromInstance, to, toAt int
	seq                          uint64
}

// newReplacements draws the nodes and what happens to them.
func newReplacements(t *testing.T, seed uint64) *replacements {
	r := &replacements{
		t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 7)), program: newProgram(), memory: table.NewMemory(),
		network: transport.NewMemory(transport.MemoryOptions{}), began: time.Now(), handled: map[handledMessage]int{}, counts: map[string]int{},
	}
	r.nodes, r.observer = 3+r.random.IntN(3), r.memory.Open()
	r.program.messages, r.program.burst = 20+r.random.IntN(400), 1
	r.program.sending, r.program.received = r.sending, r.received
	return r
}

// sending checks that the process of an instance has its name. It returns the content of the message.
func (r *replacements) sending(x *instance) []byte {
	r.checkOwner(x)
	return binary.BigEndian.AppendUint64(nil, uint64(x.top.node.boot))
}

func (r *replacements) checkOwner(x *instance) {
	n := x.top.node
	if e := r.observer.Replica().Node(n.settings.node); e == nil || e.Boot != n.boot {
		r.program.fault("at %v: an instance of %s runs in a process that was replaced", r.now(), n.settings.node)
	}
}

// received counts a message. A process handles it once.
func (r *replacements) received(x *instance, m *message) {
	r.checkOwner(x)
	k := handledMessage{table.Boot(binary.BigEndian.Uint64(m.load)), x.top.node.boot, m.from, m.fromInstance, x.processor, x.index, m.seq}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.handled[k]++; r.handled[k] > 1 {
		r.program.fault("at %v: %s has handled a message %d times: %+v", r.now(), x.top.node.settings.node, r.handled[k], k)
	}
}

func (r *replacements) now() time.Duration { return time.Since(r.began) }

func (r *replacements) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, fmt.Sprintf("%v: ", r.now())+fmt.Sprintf(format, args...))
}

func (r *replacements) count(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[what]++
}

// start starts a process of a node, which is perhaps cut off.
func (r *replacements) start(name string, cut bool) {
	r.mu.Lock()
	p := &process{of: r, name: name, wireName: fmt.Sprintf("%s#%d", name, len(r.processes)), ended: make(chan struct{}), cut: cut, startedCut: cut}
	r.processes = append(r.processes, p)
	r.mu.Unlock()
	wire, err := r.network.Join(p.wireName)
	if err != nil {
		r.t.Fatal(err)
	}
	p.top, err = r.program.newTop(func(s piper.NodeSettings) (*Node, error) {
		s.Transport = processWire{wire, p}
		c := r.program.config(r.nodes, r.t.TempDir(), r.memory)
		c.Table = func(table.Setup) (table.Table, error) { return slowTable{p.openTable()}, nil }
		c.Membership, c.Retry.Timeout = member.Config{Profile: member.ProfileLocal}, shortRetry
		return Open(c, s)
	}, piper.Node(name), piper.DrainTimeout(time.Minute), piper.Logger(slog.New(slog.DiscardHandler)))
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(r.t.Context())
	p.stop = stop
	r.note("%s starts with the boot id %v", p.wireName, p.top.node.boot)
	go func() {
		p.err = p.top.pool.Run(ctx)
		_ = wire.Close()
		r.note("%s ends: %v", p.wireName, p.err)
		close(p.ended)
	}()
}

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// setCut cuts a process off from all others and from the address table, or ends this.
func (p *process) setCut(cut bool) {
	r := p.of
	r.note("%s is cut off: %v", p.wireName, cut)
	r.mu.Lock()
	p.cut = cut
	t := p.table
	r.mu.Unlock()
	if t != nil {
		r.memory.Cut(t, cut)
	}
}

// openTable opens the address table of a process.
func (p *process) openTable() table.Table {
	r := p.of
	t := r.memory.Open()
	r.mu.Lock()
	p.table = t
	cut := p.cut
	r.mu.Unlock()
	if cut {
		r.memory.Cut(t, true)
	}
	return t
}

// slowTable is a table that needs some time to notice that it is cut off, as the engines do.
type slowTable struct{ table.Table }

func (t slowTable) Txn(ctx context.Context, guards []table.Guard, changes []table.Change) (table.Revision, error) {
	at, err := t.Table.Txn(ctx, guards, changes)
	if errors.Is(err, table.ErrUnknown) {
		time.Sleep(100 * time.Millisecond) // virtual time
	}
	return at, err
}

// processWire is the transport of a process. Its node has another name in the network, so that two processes of a node can
// be there at a time. A message to a node arrives at all its processes.
type processWire struct {
	transport.Transport
	process *process
}

func (w processWire) Send(to string, messages ...transport.Message) {
	r := w.process.of
	r.mu.Lock()
	others := slices.Clone(r.processes)
	others = slices.DeleteFunc(others, func(p *process) bool { return p.name != to || p.cut || w.process.cut })
	r.mu.Unlock()
	for _, other := range others {
		list := slices.Clone(messages)
		for i := range list {
			list[i].Payload = slices.Clone(list[i].Payload)
		}
		w.Transport.Send(other.wireName, list...)
	}
}

func (w processWire) Handle(group uint64, receive func(from string, payloads [][]byte)) {
	if receive == nil {
		w.Transport.Handle(group, nil)
		return
	}
	w.Transport.Handle(group, func(from string, payloads [][]byte) {
		name, _, _ := strings.Cut(from, "#")
		receive(name, payloads)
	})
}

func (processWire) SetPeer(string, string)                            {}
func (processWire) RemovePeer(string)                                 {}
func (processWire) PeerAddress(name string) (address string, ok bool) { return name, true }

// moment draws a time. Many are early, when the nodes start, and others are before and after the end of the topology.
func (r *replacements) moment() time.Duration {
	if r.random.IntN(3) == 0 {
		return time.Duration(r.random.Int64N(int64(100 * time.Millisecond)))
	}
	return time.Duration(r.random.Int64N(int64(time.Duration(r.program.messages)*burstPause + 5*time.Second)))
}

const (
	stopAfter  = 90 * time.Second // after the last fault, the processes that still run are stopped
	endsWithin = 3 * time.Minute
)

// run runs the program to its end.
func (r *replacements) run() {
	early := r.random.IntN(4 * r.nodes) // one node perhaps starts while it is cut off
	for i := range r.nodes {
		r.start(fmt.Sprintf("n%d", i+1), i == early)
	}
	var faults sync.WaitGroup
	used := map[int]bool{}
	if early < r.nodes {
		used[early] = true
		random := rand.New(rand.NewPCG(r.random.Uint64(), 1))
		faults.Go(func() { r.replace(r.processes[early], random) })
	}
	for range 1 + r.random.IntN(3) {
		node := r.random.IntN(r.nodes)
		if r.random.IntN(2) == 0 {
			node = 0 // the coordinator
		}
		if used[node] || len(used) >= (r.nodes-1)/2 {
			continue // a majority remains
		}
		used[node] = true
		at, kind, random, p := r.moment(), r.random.IntN(4), rand.New(rand.NewPCG(r.random.Uint64(), 1)), r.processes[node]
		faults.Go(func() {
			switch kind {
			case 0:
				r.awaitClosing(p, time.Duration(random.Int64N(int64(3*time.Millisecond))))
			case 1: // while it drains
				time.Sleep(at)
				r.stop(p)
				time.Sleep(time.Duration(random.Int64N(int64(2 * time.Second))))
			default:
				time.Sleep(at) // virtual time
			}
			r.replace(p, random)
		})
	}
	if r.random.IntN(3) == 0 {
		at, node := r.moment(), r.random.IntN(r.nodes)
		faults.Go(func() {
			time.Sleep(at)
			r.stop(r.processes[node])
		})
	}
	faults.Wait()
	r.await()
}

// stop stops a process, which drains then.
func (r *replacements) stop(p *process) {
	r.note("%s is stopped", p.wireName)
	r.count("stops")
	p.wasStopped = true
	p.stop()
}

// awaitClosing waits until the nodes begin to agree that the topology has finished, and then for some time.
func (r *replacements) awaitClosing(p *process, more time.Duration) {
	for limit := time.Now().Add(30 * time.Second); time.Now().Before(limit) && !p.hasEnded() && p.top.border.Group(1).Phase == piper.GroupOpen; {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(more)
}

// replace cuts off a process, and perhaps starts the next one of its node. Perhaps it comes back.
func (r *replacements) replace(p *process, random *rand.Rand) {
	if p.hasEnded() {
		return
	}
	state := p.top.node.View().State
	if state == stateRunning && p.top.border.Group(1).Phase != piper.GroupOpen {
		state = "closing"
	}
	r.count("cut while " + state)
	p.setCut(true)
	p.wasCut = true
	var next time.Duration = -1
	if random.IntN(4) > 0 {
		next = time.Duration(random.Int64N(int64(2 * time.Second)))
	}
	cut := time.Duration(random.Int64N(int64(2 * shortRetry)))
	if next >= 0 && next < cut {
		time.Sleep(next)
		r.start(p.name, false)
		cut -= next
	}
	select {
	case <-p.ended:
	case <-time.After(cut):
		p.setCut(false)
	}
}

// await waits until all processes have ended. A node without a process gets one, unless its last one has ended in order.
func (r *replacements) await() {
	stop, limit := time.After(stopAfter), time.After(endsWithin)
	stopped := false
	for {
		running, without := r.running()
		if len(running) == 0 {
			return
		}
		for _, name := range without {
			if !stopped {
				r.start(name, false)
			}
		}
		select {
		case <-running[0].ended:
		case <-time.After(time.Second):
		case <-stop:
			stopped = true
			for _, p := range running {
				r.note("%s is stopped, because it still runs", p.wireName)
				p.wasStopped = true
				p.stop()
			}
		case <-limit:
			for _, p := range running {
				r.program.fault("%s has not ended, and is %s", p.wireName, p.top.node.View().State)
				p.top.border.Fail(errors.New("the test is over"))
				p.stop()
				<-p.ended
			}
			return
		}
	}
}

// running lists the processes that run, and the nodes whose last process has failed.
func (r *replacements) running() (list []*process, without []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := map[string]*process{}
	for _, p := range r.processes {
		if last[p.name] = p; !p.hasEnded() {
			list = append(list, p)
		}
	}
	for i := range r.nodes {
		name := fmt.Sprintf("n%d", i+1)
		if p := last[name]; p.hasEnded() && p.err != nil && !slices.ContainsFunc(list, func(o *process) bool { return o.name == name }) {
			without = append(without, name)
		}
	}
	return list, without
}

// check checks what holds when all processes have ended.
func (r *replacements) check() {
	for i, p := range r.processes {
		switch later := slices.ContainsFunc(r.processes[i+1:], func(o *process) bool { return o.name == p.name }); {
		case p.err == nil:
			r.checkCounters(p, i >= r.nodes || p.startedCut && later)
			r.count("ended")
		case errors.Is(p.err, ErrFenced) && p.wasCut:
			r.count("fenced")
		case errors.Is(p.err, table.ErrSuperseded) && later:
			r.count("replaced")
		case errors.Is(p.err, context.Canceled) && p.wasStopped:
			r.count("stopped")
		default:
			r.program.fault("%s ends with %v", p.wireName, p.err)
		}
	}
}

// checkCounters checks that a process has kept nothing, and that the messages which count as handled were handled. late
// says that it has perhaps entered when the others had finished. Then its messages to them are dropped and confirmed.
func (r *replacements) checkCounters(p *process, late bool) {
	for peer := range p.top.node.core.nodes() {
		if peer.kept > 0 {
			r.program.fault("%s keeps %d messages for %s", p.wireName, peer.kept, peer.name)
		}
	}
	handled := map[int]uint64{}
	seen := map[handledMessage]bool{}
	for k := range r.handled {
		if once := k; k.sender == p.top.node.boot {
			if once.receiver = 0; !seen[once] {
				seen[once] = true
				handled[r.program.edge(k.from, k.to)]++
			}
		}
	}
	for i, e := range p.top.pool.Snapshot().Edges {
		everyNode := r.program.processors[r.program.edges[i][1]].everyNode || r.program.processors[r.program.edges[i][0]].everyNode
		switch {
		case e.Len != 0 || e.Waiting != 0 || e.Sent != e.Received+e.Dropped:
			r.program.fault("%s: edge %d: %+v", p.wireName, i, e)
		case everyNode:
		case !late && e.Received > handled[i] || handled[i] > e.Sent:
			r.program.fault("%s: edge %d: %d messages were handled, and the figures are %+v", p.wireName, i, handled[i], e)
		case e.Dropped > 0 && r.counts["stops"] == 0 && !slices.ContainsFunc(r.processes, func(p *process) bool { return p.wasCut }):
			r.program.fault("%s: edge %d: messages were dropped without a fault: %+v", p.wireName, i, e)
		}
	}
}

// failure describes what was wrong, or returns "".
func (r *replacements) failure() string {
	if len(r.program.faults) == 0 {
		return ""
	}
	return fmt.Sprintf("seed %d, %d nodes: %s\n%s", r.seed, r.nodes, strings.Join(r.program.faults, "\n"), strings.Join(r.log, "\n"))
}

// TestRandomReplacements replaces and fences processes at random times: while the nodes start, in work, while one drains, and
// when the topology ends, also the coordinator. Each run must end, with nothing kept. A process calls no handler after
// another one has its name.
func TestRandomReplacements(t *testing.T) {
	counts, failed := map[string]int{}, 0
	first, end := speed.Seeds(t, 3, 100, 10_000)
	end = first + speed.Tenth(t, end-first)
	for seed := first; seed < end && failed < failuresShown; seed++ {
		synctest.Test(t, func(t *testing.T) {
			r := newReplacements(t, seed)
			r.run()
			r.check()
			if f := r.failure(); f != "" {
				failed++
				t.Errorf("%s\n%s", f, speed.Repeat(t, seed))
			}
			for k, v := range r.counts {
				counts[k] += v
			}
		})
	}
	t.Logf("%d seeds from %d on: %v", end-first, first, counts)
	for _, kind := range []string{"fenced", "replaced", "stops", "cut while starting", "cut while running", "cut while draining", "cut while closing"} {
		if counts[kind] == 0 && end-first >= 100 && failed == 0 {
			t.Errorf("%s: none in %d seeds", kind, end-first)
		}
	}
}
