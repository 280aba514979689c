package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/member"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/transport"
)

// lanLease is the lease with the default profile.
var lanLease = member.Config{}.Lease()

// shortRetry is retry.timeout in these tests.
const shortRetry = 5 * time.Second

// fenced are the nodes of a program whose tables can be cut off, in virtual time.
type fenced struct {
	t       *testing.T
	program *program
	memory  *table.Memory
	network *transport.Memory
	tops    []*top
	stops   []context.CancelFunc
	ends    []chan error
}

// newFenced starts a program on three nodes. The program takes 28 seconds.
func newFenced(t *testing.T) *fenced {
	f := &fenced{t: t, program: newProgram(), memory: table.NewMemory(), network: transport.NewMemory(transport.MemoryOptions{})}
	f.program.messages, f.program.burst = 700, 1
	for i := range 3 {
		f.start(fmt.Sprintf("n%d", i+1), t.TempDir())
	}
	return f
}

func (f *fenced) start(name, dir string) {
	wire, err := f.network.Join(name)
	if err != nil {
		f.t.Fatal(err)
	}
	top, err := f.program.newTop(func(s piper.NodeSettings) (*Node, error) {
		s.Transport = wire
		c := f.program.config(3, dir, f.memory)
		c.Membership, c.Retry.Timeout = member.Config{}, shortRetry
		return Open(c, s)
	}, piper.Node(name), piper.DrainTimeout(time.Minute))
	if err != nil {
		f.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(f.t.Context())
	ended := make(chan error, 1)
	f.tops, f.stops, f.ends = append(f.tops, top), append(f.stops, stop), append(f.ends, ended)
	go func() {
		err := top.pool.Run(ctx)
		_ = wire.Close() // before the next process of the node joins
		ended <- err
	}()
}

// cut cuts off the table of a node.
func (f *fenced) cut(i int, cut bool) { f.memory.Cut(f.tops[i].node.table, cut) }

// calls counts what the instances of a node have handled and sent.
func (f *fenced) calls(i int) (n uint64) {
	for _, e := range f.tops[i].pool.Snapshot().Edges {
		n += e.Sent + e.Received
	}
	return n
}

// TestAShortCutFromTheTable cuts off the table of a node for some time. Its handlers stop before its lease can have
// another holder, and go on after it has the lease again. All messages are handled once.
func TestAShortCutFromTheTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFenced(t)
		for range 2 {
			time.Sleep(3 * time.Second) // virtual time
			f.cut(1, true)
			time.Sleep(lanLease)
			before := f.calls(1)
			time.Sleep(2 * time.Second)
			if n := f.calls(1) - before; n > 0 {
				t.Errorf("%d messages were sent and handled without the lease", n)
			}
			if !f.tops[1].node.View().Fenced {
				t.Error("the view does not say that the node is fenced")
			}
			f.cut(1, false)
			time.Sleep(time.Second)
			if f.calls(1) == before {
				t.Fatal("the node does not go on after the cut")
			}
		}
		for i, end := range f.ends {
			if err := <-end; err != nil {
				t.Errorf("node %d: %v", i+1, err)
			}
		}
		if err := f.program.check(f.tops); err != nil {
			t.Error(err)
		}
	})
}

// TestALongCutFromTheTable cuts off the table of a node for longer than retry.timeout. It ends.
func TestALongCutFromTheTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFenced(t)
		time.Sleep(3 * time.Second)
		f.cut(1, true)
		began := time.Now()
		err := <-f.ends[1]
		took, want := time.Since(began), lanLease+shortRetry
		if !errors.Is(err, ErrFenced) || took < want-lanLease/2 || took > want+2*releaseTimeout+2*farewellShort {
			t.Errorf("after %v Run returns %v", took, err)
		}
		if text := fmt.Sprint(err); !strings.Contains(text, "node n2: cluster: this node is fenced: it has reached no majority for 5") {
			t.Errorf("the error is %s", text)
		}
		f.start("n2", t.TempDir()) // the next process goes on
		for _, i := range []int{0, 2, 3} {
			if err := <-f.ends[i]; err != nil {
				t.Errorf("process %d: %v", i+1, err)
			}
		}
	})
}

// TestStopsOfANodeThatIsCutOff cuts off the table of one node. Then it stops this node, or all nodes. If the cut ends, the
// node gets its lease again and drains. Otherwise the node ends with ErrFenced.
func TestStopsOfANodeThatIsCutOff(t *testing.T) {
	for _, c := range []struct {
		name       string
		all, heals bool
	}{{"all nodes", true, true}, {"one node", false, true}, {"one node, for good", false, false}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFenced(t)
				time.Sleep(3 * time.Second)
				f.cut(1, true)
				time.Sleep(lanLease + time.Second)
				for i, stop := range f.stops {
					if i == 1 || c.all {
						stop()
					}
				}
				time.Sleep(time.Second)
				if c.heals {
					f.cut(1, false)
				}
				if err := <-f.ends[1]; c.heals && err != nil || !c.heals && !errors.Is(err, ErrFenced) {
					t.Errorf("the node ends with %v", err)
				}
				if !c.heals {
					f.start("n2", t.TempDir())
				}
				for i, end := range f.ends {
					if i == 1 {
						continue
					}
					f.stops[i]()
					if err := <-end; err != nil {
						t.Errorf("process %d: %v", i+1, err)
					}
				}
				if c.all {
					if err := f.program.check(f.tops); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}

// TestAProcessEntersWithTheLease starts another process of a node that was cut off. It waits until the former process has
// stopped its calls. The former process ends.
func TestAProcessEntersWithTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFenced(t)
		time.Sleep(10 * time.Second)
		former := f.tops[1].node
		f.cut(1, true)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		entered := make(chan time.Time, 1)
		f.program.init = func(context.Context) error {
			select {
			case entered <- time.Now():
			default:
			}
			return nil
		}
		for _, name := range []string{"n1", "n3"} {
			f.network.Cut("n2", name, true)
			f.network.Cut(name, "n2", true)
		}
		began := time.Now()
		next := f.memory.Open()
		defer next.Close()
		other := newNode(settings{Config: f.program.config(3, t.TempDir(), f.memory), node: "n2", log: former.log})
		other.settings.Membership = member.Config{}
		other.table, other.fence.by = next, leaseProof
		done := make(chan error, 1)
		go func() { done <- other.enter(ctx) }()
		before := uint64(0)
		for next.Replica().Node("n2").Boot == former.boot {
			before = f.calls(1)
			time.Sleep(100 * time.Millisecond)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < lanLease/2 || took > lanLease+2*time.Second {
			t.Errorf("the next process has entered after %v", took)
		}
		time.Sleep(time.Second)
		if n := f.calls(1) - before; n > 0 {
			t.Errorf("%d messages were sent and handled after another process has entered", n)
		}
		f.cut(1, false)
		if err := <-f.ends[1]; !errors.Is(err, table.ErrSuperseded) {
			t.Errorf("the former process ends with %v", err)
		}
		other.fence.end()
		cancel()
		for _, i := range []int{0, 2} {
			f.tops[i].border.Fail(errors.New("the test is over"))
			<-f.ends[i]
		}
	})
}

// resident is a table in the folder of a node.
type resident struct {
	table.Table
	essential bool
}

func (r resident) Essential() bool { return r.essential }

// TestProofs lists what the fence of a node goes by.
func TestProofs(t *testing.T) {
	memory := table.NewMemory().Open()
	for _, c := range []struct {
		name  string
		fence string
		table table.Table
		want  proof
	}{
		{"a table outside of the nodes", "", memory, leaseProof},
		{"raft with three voters", member.FenceMajority, resident{memory, false}, leaseProof},
		{"raft without a majority of others", "", resident{memory, true}, majorityProof},
		{"broadcast", "", lossyTable{memory}, majorityProof},
		{"no fence", member.FenceOff, memory, noProof},
	} {
		n := &Node{table: c.table}
		n.settings.Membership.Fence = c.fence
		if got := n.chooseProof(); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

// TestHolders compares the holders of processes: those of one folder that the engine locks are one holder.
func TestHolders(t *testing.T) {
	memory := table.NewMemory().Open()
	holder := func(dir string, in table.Table) string {
		t.Helper()
		n := newNode(settings{Config: Config{Dir: dir}, node: "n1"})
		n.table = in
		h, err := n.holder()
		if err != nil || h == "" || len(h) > table.NameBytesMax {
			t.Fatalf("%q, %v", h, err)
		}
		return h
	}
	folder, other := t.TempDir(), t.TempDir()
	locked := resident{Table: memory}
	first := holder(folder, locked)
	if _, err := os.Stat("/proc/sys/kernel/random/boot_id"); err == nil && holder(folder, locked) != first {
		t.Error("two processes of a folder are two holders")
	}
	if holder(other, locked) == first {
		t.Error("the processes of two folders are one holder")
	}
	if a, b := holder(folder, memory), holder(folder, memory); a == b {
		t.Error("two processes are one holder although no engine locks their folder")
	}
}

// gateCalls are the calls of a gate.
type gateCalls struct {
	calls  []string
	failed chan error
}

func (g *gateCalls) OpenGate(time.Time) { g.calls = append(g.calls, "open") }
func (g *gateCalls) CloseGate()         { g.calls = append(g.calls, "close") }
func (g *gateCalls) LookAtGate()        {}
func (g *gateCalls) Fail(err error)     { g.failed <- err }
func (g *gateCalls) Snapshot() piper.Snapshot {
	return piper.Snapshot{Edges: []piper.EdgeFigures{{Len: 3}, {Len: 4}}}
}

// fencedDetector is a detector that sees no majority.
type fencedDetector struct{ fixedDetector }

func (fencedDetector) Fenced() bool { return true }

// TestTheFenceOfFailureDetection closes and opens the gate of a node that has no lease.
func TestTheFenceOfFailureDetection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(settings{Config: Config{Retry: Retry{Timeout: 10 * time.Second}}, node: "n1", log: slog.New(slog.DiscardHandler)})
		n.detector = fencedDetector{}
		g := &gateCalls{failed: make(chan error, 1)}
		f := &n.fence
		f.by = majorityProof
		f.majority(true) // before the instances have their places
		f.begin(g)
		time.Sleep(time.Minute) // virtual time: a node waits for the others as long as it takes when it starts
		for _, reached := range []bool{true, true, false, false, true, false} {
			f.majority(reached)
			time.Sleep(time.Second)
		}
		if want := []string{"close", "open", "close", "open", "close"}; !slices.Equal(g.calls, want) || len(g.failed) > 0 {
			t.Fatalf("the gate had the calls %v, and %d errors; want %v", g.calls, len(g.failed), want)
		}
		err := <-g.failed
		if !errors.Is(err, ErrFenced) || !strings.Contains(err.Error(), "no majority for 10s") || !strings.Contains(err.Error(), "7 messages were in its queues") {
			t.Errorf("after retry.timeout the node ends with %v", err)
		}
		n.ending.Store(true)
		if f.majority(true); len(g.calls) != 5 {
			t.Error("a node that ends has opened its gate")
		}
	})
}

// detectorAtBegin finds a majority while the instances get their places.
type detectorAtBegin struct {
	fixedDetector
	fence *fence
	calls *sync.WaitGroup
}

func (d detectorAtBegin) Fenced() bool {
	d.calls.Go(func() { d.fence.majority(true) })
	runtime.Gosched()
	return true
}

// TestAMajorityIsFoundAtTheStart opens the gate of a node that finds a majority while its instances get their
// places. With the race detector it fails if begin and majority do not exclude each other.
func TestAMajorityIsFoundAtTheStart(t *testing.T) {
	for range 100 {
		n := newNode(settings{node: "n1", log: slog.New(slog.DiscardHandler)})
		f, g, calls := &n.fence, &gateCalls{}, new(sync.WaitGroup)
		n.detector = detectorAtBegin{fence: f, calls: calls}
		f.by = majorityProof
		f.begin(g)
		calls.Wait()
		if want := []string{"close", "open"}; !slices.Equal(g.calls, want) {
			t.Fatalf("the gate had the calls %v, want %v", g.calls, want)
		}
	}
}

// TestTheLimitOfALossIsLate runs the end of retry.timeout after the majority was found again.
func TestTheLimitOfALossIsLate(t *testing.T) {
	n := newNode(settings{Config: Config{Retry: Retry{Timeout: time.Hour}}, node: "n1", log: slog.New(slog.DiscardHandler)})
	g := &gateCalls{failed: make(chan error, 1)}
	f := &n.fence
	f.by, f.gate = majorityProof, g
	f.majority(true)
	f.majority(false)
	f.majority(true)
	if f.fail(); len(g.failed) > 0 {
		t.Errorf("a node that has its proof again ends with %v", <-g.failed)
	}
}
