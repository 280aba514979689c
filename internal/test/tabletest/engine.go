package tabletest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/cluster/table"
)

// Engine is an engine under test.
type Engine struct {
	// New returns a new, empty table. The first nodes of its cluster are n1, n2 and n3.
	New func(t *testing.T) Cluster
	// Lacks are the guarantees that the engine does not keep, with the reasons.
	Lacks map[Guarantee]string
	// RealTime is for an engine that waits for other processes or for sockets. The tests of other
	// engines run in the virtual time of synctest.
	RealTime bool
}

// Guarantee is a guarantee that an engine may lack.
type Guarantee string

// The guarantees that not every engine keeps.
const (
	Durable         Guarantee = "durable"          // the table survives a stop of all nodes
	Majority        Guarantee = "majority"         // transactions succeed while a minority of the first nodes is stopped
	LeasesInReplica Guarantee = "leases-in-events" // events and snapshots contain the leases
	NoSplitBrain    Guarantee = "no-split-brain"   // a node that is cut off from the majority cannot change the table
)

// Cluster is a table with its nodes. Open opens the table on a node; the test closes it.
// It may be opened again after Close, like a process that starts again. Any name may be
// opened while n1, n2 and n3 are open.
type Cluster interface {
	Open(t *testing.T, name string) table.Table
}

// Cutter is a Cluster that can cut a node off from all others. Engines whose nodes do not
// talk to each other do not need it.
type Cutter interface{ Cut(name string, cut bool) }

// timeout limits each test. It is long because other processes may use the CPUs.
const timeout = time.Minute

// Run runs all tests of the suite.
func Run(t *testing.T, e Engine) {
	for _, c := range []conformance{
		{"BootstrapHappensOnce", "", bootstrapHappensOnce},
		{"TransactionsAreAtomic", "", transactionsAreAtomic},
		{"EpochsDecideConflicts", "", epochsDecideConflicts},
		{"NodesApplyTheSameChanges", "", nodesApplyTheSameChanges},
		{"SlowWatcherGetsSnapshot", "", slowWatcherGetsSnapshot},
		{"WatcherContinues", "", watcherContinues},
		{"LateNodeGetsEverything", "", lateNodeGetsEverything},
		{"OtherPlanIsRefused", "", otherPlanIsRefused},
		{"NewestProcessHasTheName", "", newestProcessHasTheName},
		{"RemovedNodeIsGone", "", removedNodeIsGone},
		{"InvalidTransactionsChangeNothing", "", invalidTransactionsChangeNothing},
		{"NodesJoinAndLeave", "", nodesJoinAndLeave},
		{"LeaseHasOneHolder", "", leaseHasOneHolder},
		{"LeaseFencesTransactions", "", leaseFencesTransactions},
		{"LeaseIsLostWithItsTable", "", leaseIsLostWithItsTable},
		{"LeasesAreInEvents", LeasesInReplica, leasesAreInEvents},
		{"ClosedTableRefuses", "", closedTableRefuses},
		{"TableSurvivesRestart", Durable, tableSurvivesRestart},
		{"MinorityMayStop", Majority, minorityMayStop},
		{"MinorityCannotWrite", NoSplitBrain, minorityCannotWrite},
	} {
		t.Run(c.name, func(t *testing.T) {
			if reason, lacks := e.Lacks[c.needs]; lacks && c.needs != "" {
				t.Skipf("the engine does not keep the guarantee %q: %s", c.needs, reason)
			}
			if e.RealTime {
				c.runOn(t, e)
			} else {
				synctest.Test(t, func(t *testing.T) { c.runOn(t, e) })
			}
		})
	}
}

// conformance is a test of the suite.
type conformance struct {
	name  string
	needs Guarantee
	run   func(*testing.T, *suite)
}

// runOn runs the test with a new table.
func (c *conformance) runOn(t *testing.T, e Engine) {
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	s := &suite{T: t, ctx: ctx, cluster: e.New(t), open: map[string]table.Table{}}
	defer s.closeAll()
	for _, name := range firstNames {
		s.node(name)
	}
	c.run(t, s)
}

var firstNames = []string{"n1", "n2", "n3"}

// plan and placements are the topology of all tests.
const plan = "plan-1"

// described is the plan with its description, and halved is another one.
var (
	described = table.NewPlan(plan, []string{"topology test =", "processor counter = number 0, 64 instances", "processor audit = number 1, 2 instances, on node n1"})
	halved    = table.NewPlan("plan-2", []string{"topology test =", "processor counter = number 0, 32 instances", "processor audit = number 1, 2 instances, on node n1"})
)

// refusal is how the plan halved differs.
const refusal = "the processor counter has 64 instances in the cluster and 32 instances here"

var placements = []table.Placement{
	{Processor: table.Processor{Name: "counter", Instances: 64}},
	{Processor: table.Processor{Name: "audit", Instances: 2}, Kind: table.Fixed, Node: "n1"},
	{Processor: table.Processor{Name: "probe", Instances: 2}, Kind: table.EveryNode},
}

// suite is a test with its tables.
type suite struct {
	*testing.T
	ctx     context.Context
	cluster Cluster
	open    map[string]table.Table
}

// node returns the table on a node, and opens it first if needed.
func (s *suite) node(name string) table.Table {
	s.Helper()
	if s.open[name] == nil {
		s.open[name] = s.cluster.Open(s.T, name)
	}
	return s.open[name]
}

// stop closes the table on a node.
func (s *suite) stop(name string) {
	s.Helper()
	if err := s.open[name].Close(); err != nil {
		s.Errorf("Close of %s: %v", name, err)
	}
	delete(s.open, name)
}

func (s *suite) closeAll() {
	for name := range s.open {
		s.stop(name)
	}
}

// bootstrap defines the topology of the tests.
func (s *suite) bootstrap() {
	s.Helper()
	if err := table.Bootstrap(s.ctx, s.node("n1"), described, placements, firstNodes()); err != nil {
		s.Fatal(err)
	}
}

func firstNodes() (list []table.Node) {
	for _, name := range firstNames {
		list = append(list, table.Node{Name: name, Address: name + ":7400"})
	}
	return list
}

// txn is a transaction that must succeed.
func (s *suite) txn(t table.Table, guards []table.Guard, changes ...table.Change) table.Revision {
	s.Helper()
	for {
		revision, err := t.Txn(s.ctx, guards, changes)
		if errors.Is(err, table.ErrUnknown) && s.ctx.Err() == nil {
			continue // all transactions of the suite may be repeated
		}
		if err != nil {
			s.Fatalf("transaction %v with guards %v: %v", changes, guards, err)
		}
		return revision
	}
}

// refused is a transaction that must fail with an error and change nothing.
func (s *suite) refused(t table.Table, want error, guards []table.Guard, changes ...table.Change) {
	s.Helper()
	s.sync(t)
	before := describe(t.Replica().Snapshot())
	if _, err := t.Txn(s.ctx, guards, changes); !errors.Is(err, want) {
		s.Fatalf("transaction %v with guards %v: got the error %v, want %v", changes, guards, err, want)
	}
	s.sync(t)
	if after := describe(t.Replica().Snapshot()); after != before {
		s.Fatalf("the refused transaction %v has changed the table from\n%s\nto\n%s", changes, before, after)
	}
}

func (s *suite) sync(t table.Table) {
	s.Helper()
	if err := t.Sync(s.ctx); err != nil {
		s.Fatalf("Sync: %v", err)
	}
}

// lookup returns the name of a container's node, and the epoch.
func lookup(t table.Table, processor string, instance int) (string, uint64) {
	index, _, ok := t.Replica().Processor(processor)
	if !ok {
		return "no such processor", 0
	}
	n, epoch := t.Replica().Lookup(index, instance)
	if n == nil {
		return "", epoch
	}
	return n.Name, epoch
}

// describe returns the content of a snapshot as text, without the revision and the leases.
func describe(v *table.Snapshot) string {
	return fmt.Sprintf("plan %s\n%s\nnodes %v\nprocessors %v", v.Plan, v.Description, v.Nodes, v.Processors)
}

// same waits until the tables of all open nodes are equal, and returns their content.
func (s *suite) same() string {
	s.Helper()
	want, from := "", ""
	for name, t := range s.open {
		s.sync(t)
		got := describe(t.Replica().Snapshot())
		if want != "" && got != want {
			s.Fatalf("the tables of %s and %s differ:\n%s\n\n%s", from, name, want, got)
		}
		want, from = got, name
	}
	return want
}
