package broadcast

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/transport"
)

// memoryLog is a log in memory.
type memoryLog struct{ contents }

func (l *memoryLog) append(e *entry) error { l.entries = append(l.entries, e); return nil }
func (l *memoryLog) close() error          { return nil }

func (l *memoryLog) install(_ table.Revision, state []byte) (err error) {
	l.entries = nil
	l.state, err = table.ReadState(state)
	return err
}

// simulation is a cluster of cores in one goroutine, with a network that loses, repeats
// and delays messages.
type simulation struct {
	t       *testing.T
	rng     *rand.Rand
	network *transport.Network[message]
	names   []string
	logs    []*memoryLog
	cores   []*core // nil: stopped
	now     int64
	number  uint64
	done    map[uint64]result // results of commands
}

func newSimulation(t *testing.T, seed uint64, faults transport.Faults) *simulation {
	rng := rand.New(rand.NewPCG(seed, 1))
	s := &simulation{t: t, rng: rng, network: transport.NewNetwork[message](rng, faults), done: map[uint64]result{}}
	for i := range 4 {
		s.names = append(s.names, fmt.Sprint("n", i+1))
		s.logs = append(s.logs, &memoryLog{})
		s.cores = append(s.cores, nil)
		s.start(i)
	}
	return s
}

func (s *simulation) start(i int) {
	l := s.logs[i]
	from := l.contents
	if from.state != nil { // the core changes the state
		var err error
		if from.state, err = table.ReadState(from.state.Append(nil)); err != nil {
			s.t.Fatal(err)
		}
	}
	s.cores[i] = newCore(s.names[i], table.NewReplica(), l, from)
}

// alive returns the nodes that run: all nodes agree.
func (s *simulation) alive() (names []string) {
	for i, c := range s.cores {
		if c != nil {
			names = append(names, s.names[i])
		}
	}
	return names
}

// step delivers the messages of a millisecond, and ticks all nodes every tenth time.
func (s *simulation) step() {
	s.now++
	for {
		from, to, m, ok := s.network.Deliver(s.now)
		if !ok {
			break
		}
		if c := s.cores[to]; c != nil {
			c.receive(s.now, s.names[from], m)
			s.flush(to)
		}
	}
	for i, c := range s.cores {
		if c != nil && s.now%10 == 0 {
			c.tick(s.now, s.alive())
			s.flush(i)
		}
	}
}

func (s *simulation) flush(i int) {
	c := s.cores[i]
	if c.err != nil {
		s.t.Fatalf("%s: %v", c.self, c.err)
	}
	for _, o := range c.out {
		s.network.Send(s.now, i, slices.Index(s.names, o.to), o.message)
	}
	c.out = nil
	for _, r := range c.results {
		s.done[r.number] = r
	}
	c.results = nil
}

// propose proposes a command at a node until it has a result.
func (s *simulation) propose(changes ...table.Change) {
	data, err := table.AppendCommand(nil, &table.Command{Kind: table.CommandTxn, Changes: changes})
	if err != nil {
		s.t.Fatal(err)
	}
	s.number++
	number := s.number
	for tries := 0; ; tries++ {
		if tries > 5000 {
			s.t.Fatalf("command %d has no result", number)
		}
		if r, ok := s.done[number]; ok && r.status != statusRetry {
			return
		}
		if tries%20 == 0 {
			lowest := slices.IndexFunc(s.cores, func(c *core) bool { return c != nil })
			c := s.cores[lowest]
			c.propose(s.now, proposal{from: c.self, number: number, data: data})
			s.flush(lowest)
		}
		s.step()
	}
}

// TestRandomFaults runs clusters whose nodes stop and start, on a network that loses
// messages. All nodes agree which nodes are alive. An acknowledged change is never lost
// while a node remains that was alive, and all nodes end with the same table.
func TestRandomFaults(t *testing.T) {
	speed.NoRace(t)
	first, end := speed.Seeds(t, 50, 500, 10_000)
	for seed := first; seed < end; seed++ {
		s := newSimulation(t, seed, transport.Faults{Loss: 0.1, Duplicate: 0.05, DelayMin: 1, DelayMax: 8})
		s.propose(table.Define{Plan: "p", Processors: []table.Processor{{Name: "a", Instances: 4}}},
			table.Join{Node: table.Node{Name: "n1"}}, table.Join{Node: table.Node{Name: "n2"}})
		epochs := make([]uint64, 4) // acknowledged
		for range 60 {
			switch i := s.rng.IntN(len(s.cores)); {
			case s.rng.IntN(6) > 0:
			case s.cores[i] == nil:
				s.start(i)
				if s.rng.IntN(2) == 0 { // it begins a term of its own
					s.cores[i].tick(s.now, nil)
					s.flush(i)
				}
				for range 10 { // the others see that it is alive
					s.step()
				}
			case len(s.alive()) > 1 && s.done[s.number].status == statusDone: // all others have all acknowledged changes
				s.cores[i] = nil
			}
			instance := s.rng.IntN(4)
			s.propose(table.Assign{Processor: "a", First: instance, Count: 1, Node: fmt.Sprint("n", 1+s.rng.IntN(2))})
			if r := s.done[s.number]; r.status == statusDone && r.outcome.Code == 0 {
				epochs[instance]++
			} else if r.status == statusDone {
				t.Fatalf("seed %d: command %d was refused: %+v\n%s", seed, s.number, r.outcome, speed.Repeat(t, seed))
			}
		}
		for i := range s.cores {
			if s.cores[i] == nil {
				s.start(i)
			}
		}
		s.network.SetFaults(transport.Faults{DelayMin: 1, DelayMax: 1})
		for range 300 {
			s.step()
		}
		want := s.cores[0].state.Append(nil)
		for i, c := range s.cores {
			if !slices.Equal(c.state.Append(nil), want) {
				t.Errorf("seed %d: %s has another table than n1: %v, %v", seed, s.names[i], c.applied(), s.cores[0].applied())
			}
		}
		for i, acknowledged := range epochs {
			if _, epoch := s.cores[0].state.Lookup(0, i); epoch < acknowledged {
				t.Errorf("seed %d: a/%d has epoch %d, but %d changes were acknowledged", seed, i, epoch, acknowledged)
			}
		}
		if t.Failed() {
			t.Fatal(speed.Repeat(t, seed))
		}
	}
}

// TestGap sends a node a change before an earlier change that it lacks.
func TestGap(t *testing.T) {
	c := newCore("n2", table.NewReplica(), &memoryLog{}, contents{})
	e := &entry{revision: table.Revision{Term: 1, Index: 5}}
	c.receive(1, "n1", message{kindChange, 1, 5, e.append(nil)})
	if len(c.out) != 1 || c.out[0].kind != kindNeed || c.applied().Index != 0 {
		t.Errorf("the node answered %+v and has applied %v, want only a request for the missing changes", c.out, c.applied())
	}
	c.out = nil
	c.receive(1, "n3", message{kindChange, 1, 5, e.append(nil)})
	if len(c.out) != 1 || c.out[0].kind != kindRefuse {
		t.Errorf("the node answered %+v to a second sequencer of the term, want a refusal", c.out)
	}
}

// TestTermOfTwoNodes: n1 begins a term that n2 does not learn of, and n2 uses the same
// number when it runs alone. Then a node that knows the term of n1 returns.
func TestTermOfTwoNodes(t *testing.T) {
	s := newSimulation(t, 1, transport.Faults{DelayMin: 1, DelayMax: 1})
	move := func() { s.propose(table.Assign{Processor: "a", First: 0, Count: 1, Node: "n1"}) }
	s.propose(table.Define{Plan: "p", Processors: []table.Processor{{Name: "a", Instances: 4}}}, table.Join{Node: table.Node{Name: "n1"}})
	s.cores[0], s.cores[1] = nil, nil
	s.start(0)
	for range 5 {
		move()
	}
	term := s.cores[2].term
	s.cores[0], s.cores[2], s.cores[3] = nil, nil, nil
	s.start(1)
	move()
	if got := s.cores[1].term; got != term {
		t.Fatalf("n2 is in term %d, want that of n1, %d", got, term)
	}
	s.start(2)
	for range 50 { // the nodes see each other
		s.step()
	}
	for range 3 {
		move()
	}
	for range 50 {
		s.step()
	}
	if a, b := s.cores[1], s.cores[2]; !slices.Equal(a.state.Append(nil), b.state.Append(nil)) {
		t.Errorf("n2 has the state %v, and n3 has %v", a.applied(), b.applied())
	}
	if _, epoch := s.cores[1].state.Lookup(0, 0); epoch < 8 { // 5 of n1 that n3 has, and 3
		t.Errorf("a/0 has epoch %d, want at least 8", epoch)
	}
}

// TestRepeatedAfterLostRole repeats a command that was in flight when its sequencer lost
// its role: the answer is that its outcome is lost.
func TestRepeatedAfterLostRole(t *testing.T) {
	c := newCore("n1", table.NewReplica(), &memoryLog{}, contents{})
	c.tick(1, []string{"n1", "n2"})
	c.receive(1, "n2", message{kindState, c.term, 0, table.NewState().Append(nil)})
	c.receive(1, "n2", message{kind: kindAck, term: c.term, index: c.applied().Index})
	p := proposal{from: "n2", number: 7, data: []byte{1, 0, 0}}
	c.propose(1, p)
	if c.flight == nil {
		t.Fatal("the command is not in flight")
	}
	c.receive(1, "n0", message{kind: kindCollect, term: c.term + 1})
	for range 2 {
		r, err := readResult(&c.out[len(c.out)-1].message)
		if c.out[len(c.out)-1].kind == kindState {
			r, err = readResult(&c.out[len(c.out)-2].message)
		}
		if err != nil || r.number != 7 || r.status != statusLost {
			t.Errorf("the answer is %+v (%v), want that the outcome is lost", r, err)
		}
		c.propose(1, p)
	}
}

// TestSequencerThatWasAlone: a node that was alone and has a table of its own takes no change when it sees another node,
// before it has merged both tables: the change would be lost.
func TestSequencerThatWasAlone(t *testing.T) {
	c := newCore("n1", table.NewReplica(), &memoryLog{}, contents{})
	c.tick(1, nil)
	if !c.leads {
		t.Fatal("the node is alone and does not lead")
	}
	c.see([]string{"n1", "n2"})
	c.propose(2, proposal{from: "n1", number: 7})
	if len(c.results) != 1 || c.results[0].status != statusRetry {
		t.Errorf("got %+v, want a result that asks to repeat the proposal", c.results)
	}
}

// TestProcessThatWasAlone: a process starts again, and begins a term with the table in its folder before it sees the other
// nodes. They enter it in their table before they see it. The merge keeps the entry: the process that has entered last has the name.
func TestProcessThatWasAlone(t *testing.T) {
	s := newSimulation(t, 1, transport.Faults{DelayMin: 1, DelayMax: 1})
	process := func(name string, boot table.Boot) table.Change {
		return table.Join{Node: table.Node{Name: name, Boot: boot, Plan: "p"}}
	}
	s.propose(table.Define{Plan: "p", Processors: []table.Processor{{Name: "a", Instances: 4}}}, process("n1", 1), process("n4", 4))
	s.start(3)
	again := s.cores[3]
	again.tick(s.now, nil)
	if !again.leads || again.term <= s.cores[0].term {
		t.Fatal("the process has not begun a term of its own")
	}
	s.cores[3] = nil // the others do not see it
	s.propose(process("n4", 5))
	if n := s.cores[0].replica.Node("n4"); n == nil || n.Boot != 5 {
		t.Fatalf("the process was not entered: %+v", n)
	}
	s.cores[3] = again
	for range 100 {
		s.step()
	}
	for i, c := range s.cores {
		if n := c.replica.Node("n4"); n == nil || n.Boot != 5 {
			t.Errorf("%s has n4 as %+v, want the process that has entered last, 5", s.names[i], n)
		}
	}
}

// TestTableWithoutAPlan: a node that was alone has an empty table of a later term when it sees a node that has defined the
// processors. The merge keeps the places.
func TestTableWithoutAPlan(t *testing.T) {
	s := newSimulation(t, 1, transport.Faults{DelayMin: 1, DelayMax: 1})
	s.cores[0], s.cores[2], s.cores[3] = nil, nil, nil
	s.propose(table.Define{Plan: "p", Processors: []table.Processor{{Name: "a", Instances: 4}}},
		table.Join{Node: table.Node{Name: "n1"}}, table.Join{Node: table.Node{Name: "n2"}}, table.Assign{Processor: "a", Count: 4, Node: "n2"})
	index := s.cores[1].applied().Index
	s.logs[0] = &memoryLog{}
	s.start(0)
	s.cores[0].term = s.cores[1].term + 5
	s.cores[0].tick(s.now, nil)
	for range 100 {
		s.step()
	}
	for i, c := range s.cores[:2] {
		for instance := range 4 {
			if n, _ := c.state.Lookup(0, instance); n == nil || n.Name != "n2" {
				t.Errorf("on %s, a/%d is on %+v, want n2", s.names[i], instance, n)
			}
		}
		if c.applied().Index <= index {
			t.Errorf("on %s, the index has gone back from %d to %d", s.names[i], index, c.applied().Index)
		}
	}
}
