package piper_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/internal/test/effects"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/topo"
)

// TestSettingsReachThePool sets each setting in the file, the environment and as an option, and
// observes what the pool does.
func TestSettingsReachThePool(t *testing.T) {
	table := effects.Table{
		"Spec.Name":       snapshotsHaveTheName,
		"Spec.Topology":   effects.By("generated_test/localtests TestPipelineEverythingArrives"),
		"Spec.Processors": effects.By("TestFinishUpstreamFirst"),
		"Spec.Edges":      effects.By("TestFinishUpstreamFirst"),
		"Spec.Errors":     effects.By("generated_test/localtests TestErrorsAreKept"),
		"Spec.Supervisor": effects.By("TestSeedsDifferInRestarts"),
		"Spec.FaultLog":   faultsAreLogged,
		"Spec.Cluster":    func(t *testing.T) { nodeSettings(t) },
		"Spec.Durable":    func(t *testing.T) { durableSettings(t) },

		"Processor.Name":      effects.By("TestAnErrorNamesItsPlace"),
		"Processor.Group":     effects.By("TestFinishUpstreamFirst"),
		"Processor.Blocking":  effects.By("TestBlockingInstancesWaitSideBySide"),
		"Processor.External":  effects.By("TestChainsStartTogether"),
		"Processor.Ping":      effects.By("TestPingUpToABatch"),
		"Processor.Serve":     effects.By("TestServeUnderTheStepper"),
		"Processor.Finish":    effects.By("TestFinishUpstreamFirst"),
		"Processor.Stays":     effects.By("TestStays"),
		"Processor.Events":    effects.By("TestRandomFailuresStepped"),
		"Processor.Watch":     effects.By("TestRetriesWait"),
		"Processor.Instances": effects.By("generated_test/localtests TestPipelineEverythingArrives"),
		"Processor.Instance":  effects.By("generated_test/localtests TestConstructProcessorsWin", "generated_test/localtests TestConstructConfiguration"),
		"Processor.Others":    effects.By("runtime/cluster TestRandomClusters"),
		"Processor.Guest":     effects.By("runtime/cluster TestRandomClusters"),

		"Parts.Cell":    effects.By("generated_test/localtests TestPipelineEverythingArrives"),
		"Parts.Unit":    effects.By("generated_test/localtests TestPipelineEverythingArrives"),
		"Parts.Out":     effects.By("generated_test/localtests TestPipelineEverythingArrives"),
		"Parts.Missing": effects.By("generated_test/localtests TestConstructFailures"),

		"Watch.Then":     effects.By("TestFaultFiguresAreLoggedWhenTheyChange"),
		"Watch.Attempts": effects.By("TestRetriesWait"),
		"Watch.Timeout":  effects.By("TestTicksGoOnAfterAHang"),
		"Watch.Startup":  effects.By("TestTheFirstInitIsBounded"),
		"Watch.Shutdown": effects.By("TestASiblingThatHangsIsAbandoned"),
		"Watch.Delay":    effects.By("TestRetriesWait"),
		"Watch.MaxDelay": effects.By("TestRetriesWait"),
		"Watch.Jitter":   retriesDiffer,

		"Edge.From":       effects.By("TestFinishUpstreamFirst"),
		"Edge.To":         effects.By("TestFinishUpstreamFirst"),
		"Edge.Message":    effects.By("TestAnErrorNamesItsPlace"),
		"Edge.Capacity":   effects.By("runtime/piper/border TestSettingsOfEdgesBetweenNodes"),
		"Edge.Full":       effects.By("TestOnlyBlockPauses"),
		"Edge.Every":      effects.By("TestTimersTickAtMultiplesOfTheirPeriod"),
		"Edge.Durable":    effects.By("generated_test/durabletests TestDurableFinishes"),
		"Edge.Reply":      effects.By("runtime/cluster TestRandomClusters"),
		"Edge.Aimed":      effects.By("runtime/piper/border TestSettingsOfEdgesBetweenNodes"),
		"Edge.AtMostOnce": effects.By("runtime/piper/border TestSettingsOfEdgesBetweenNodes"),
		"Edge.Stays":      effects.By("runtime/piper/border TestSettingsOfEdgesBetweenNodes"),

		"Observe()":       effects.By("TestTheObserverHearsWhatHasFinished"),
		"Logger()":        effects.By("TestMovesAreLogged"),
		"Record()":        effects.By("TestARecorderThatPanics"),
		"UseBorder()":     effects.By("generated_test/nodetests TestClusterNodesNodes"),
		"Node()":          func(t *testing.T) { nodeSettings(t) },
		"NodeAddress()":   func(t *testing.T) { nodeSettings(t) },
		"NodeDir()":       func(t *testing.T) { nodeSettings(t) },
		"NodeRoles()":     func(t *testing.T) { nodeSettings(t) },
		"NodeTransport()": func(t *testing.T) { nodeSettings(t) },
		"Client()":        func(t *testing.T) { nodeSettings(t) },
		"DurableStore()":  func(t *testing.T) { durableSettings(t) },
		"DurableListen()": func(t *testing.T) { durableSettings(t) },
		"DurableMemory()": func(t *testing.T) { durableSettings(t) },
	}
	for _, s := range []struct {
		name, variable, text string
		file                 func(*piper.Spec)
		option               piper.Option
		effect               func(*testing.T, setting)
	}{
		{"Workers", "TOPOGEN_WORKERS", "7", func(s *piper.Spec) { s.Workers = 7 }, piper.Workers(7), workersRun},
		{"Batch", "TOPOGEN_BATCH", "10", func(s *piper.Spec) { s.Batch = 10 }, piper.Batch(10), turnsEnd},
		{"Rebalance", "TOPOGEN_REBALANCE", "20ms", func(s *piper.Spec) { s.Rebalance = 20 * time.Millisecond }, piper.Rebalance(20 * time.Millisecond), instancesMove},
		{"DrainTimeout", "TOPOGEN_DRAIN_TIMEOUT", "3s", func(s *piper.Spec) { s.DrainTimeout = 3 * time.Second }, piper.DrainTimeout(3 * time.Second), drainEnds},
		{"CycleLimit", "TOPOGEN_CYCLE_LIMIT", "5000", func(s *piper.Spec) { s.CycleLimit = 5000 }, piper.CycleLimit(5000), cycleEnds},
		{"MessageLimit", "TOPOGEN_MESSAGE_LIMIT", "100KiB", func(s *piper.Spec) { s.MessageLimit = 100 << 10 }, piper.MessageLimit(100 << 10), messagesAreLimited},
	} {
		table["Spec."+s.name] = func(t *testing.T) { s.effect(t, setting{change: s.file}) }
		table[s.variable] = func(t *testing.T) { t.Setenv(s.variable, s.text); s.effect(t, setting{}) }
		table[s.name+"()"] = func(t *testing.T) { s.effect(t, setting{option: s.option}) }
	}
	effects.Check(t, table, piper.Spec{}, piper.Processor{}, piper.Parts{}, piper.Watch{}, piper.Edge{})
}

func snapshotsHaveTheName(t *testing.T) {
	p, err := piper.New(piper.Spec{Name: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Snapshot().Topology; got != "orders" {
		t.Errorf("got %q", got)
	}
}

// setting is how a topology gets a setting.
type setting struct {
	change func(*piper.Spec)
	option piper.Option
}

func (s setting) build(t *testing.T, procs []proc, edges []edge, opts ...piper.Option) *topology {
	t.Helper()
	top, err := constructSpec(s.change, procs, edges, append(opts, s.option)...)
	if err != nil {
		t.Fatal(err)
	}
	return top
}

func workersRun(t *testing.T, s setting) {
	if n := s.build(t, []proc{{}}, nil).pool.Snapshot().Workers; n != 7 {
		t.Errorf("%d workers, want 7", n)
	}
}

// turnsEnd has two long queues: after 10 messages of one queue, the instance handles the other.
func turnsEnd(t *testing.T, s setting) {
	synctest.Test(t, func(t *testing.T) { // in virtual time, no turn takes long
		var got []int
		top := s.build(t, []proc{
			{external: true}, {external: true},
			{receive: func(_ *cell, m *message) error { got = append(got, m.edge); return nil }},
		}, []edge{{from: 0, to: 2}, {from: 1, to: 2}}, piper.Workers(1))
		for edge, x := range top.externals[:2] {
			c := x.caller()
			for range 50 {
				if err := c.send(t.Context(), edge, 0, message{}); err != nil {
					t.Fatal(err)
				}
			}
			x.Close()
		}
		top.runWhole(t)
		if turn := got[:10]; slices.Min(turn) != slices.Max(turn) || got[10] == got[9] {
			t.Errorf("the first messages have the edges %v", got[:20])
		}
	})
}

// firstMove observes when the first instance moves.
type firstMove struct{ at time.Time }

func (m *firstMove) Moved(string, int, int, int) {
	if m.at.IsZero() {
		m.at = time.Now()
	}
}
func (*firstMove) Finished(string) {}

// instancesMove has all instances on one of two workers: the first move is made after 20 ms.
func instancesMove(t *testing.T, s setting) {
	synctest.Test(t, func(t *testing.T) {
		work := proc{receive: func(*cell, *message) error { time.Sleep(40 * time.Microsecond); return nil }}
		var first firstMove
		top := s.build(t, []proc{feed(0, 1000, 1), work, feed(1, 1000, 1), work}, []edge{{from: 0, to: 1, capacity: 64}, {from: 2, to: 3, capacity: 64}},
			piper.Workers(2), piper.Observe(&first))
		piper.Pin(top.pool, []int{0, 0, 0, 0})
		began := time.Now()
		top.runWhole(t)
		if after := first.at.Sub(began); after < 20*time.Millisecond || after >= 40*time.Millisecond {
			t.Errorf("the first move is after %v, want 20ms", after)
		}
	})
}

// drainEnds has a handler that waits for the drain timeout.
func drainEnds(t *testing.T, s setting) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var stopped, ended time.Time
		top := s.build(t, []proc{feed(0, 1, 1), {blocking: true, receive: func(c *cell, _ *message) error {
			stopped = time.Now()
			stop()
			<-c.Context().Done()
			ended = time.Now()
			return nil
		}}}, []edge{{from: 0, to: 1}})
		if err := top.run(t, ctx); err == nil || ended.Sub(stopped) != 3*time.Second {
			t.Errorf("the drain timeout is %v, want 3s: %v", ended.Sub(stopped), err)
		}
	})
}

func cycleEnds(t *testing.T, s setting) {
	procs, edges := crawl(300_000, 1)
	if err := s.build(t, procs, edges).run(t, t.Context()); err == nil || !strings.Contains(err.Error(), "the limit is 5000") {
		t.Errorf("Run returns %v", err)
	}
}

// messagesAreLimited checks the limit that generated code passes to the processes of instances.
func messagesAreLimited(t *testing.T, s setting) {
	if limit := s.build(t, []proc{{}}, nil).pool.MessageLimit(); limit != 100<<10 {
		t.Errorf("the limit is %d bytes", limit)
	}
}

// faultsAreLogged has a handler that fails each second: the figures change, and are logged every 7 s.
func faultsAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log journal
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		fails := proc{watch: &piper.Watch{Then: piper.ThenSkip, Attempts: 1}, tick: func(*cell, topo.Tick) error { return errFailed }}
		top := setting{change: func(s *piper.Spec) { s.FaultLog = 7 * time.Second }}.build(t, []proc{fails}, []edge{{from: timer, to: 0, every: time.Second}}, log.option())
		if err := top.run(t, ctx); err != nil {
			t.Error(err)
		}
		if n := log.count("fault tolerance stats"); n != 60/7+1 { // and at the end
			t.Errorf("the figures were logged %d times in a minute", n)
		}
	})
}

// nodeSettings are the settings that Spec.Cluster gets. Package cluster tests what it does with them.
func nodeSettings(t *testing.T) {
	var got piper.NodeSettings
	transport, client := new(int), new(string)
	top := setting{change: func(s *piper.Spec) {
		s.Cluster = func(s piper.NodeSettings) (piper.Border, error) { got = s; return nil, nil }
	}}.build(t, []proc{{}}, nil, piper.Node("n1"), piper.NodeAddress("h:1"), piper.NodeDir("dir"), piper.NodeRoles("a", "b"), piper.NodeTransport(transport), piper.Client(client))
	got.Logger = nil
	want := piper.NodeSettings{Name: "n1", Address: "h:1", Dir: "dir", Roles: []string{"a", "b"}, Transport: transport, Client: client}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the cluster gets %+v, want %+v (%v)", got, want, top)
	}
}

// attached is the border of a pool that does not run.
type attached struct{ piper.Border }

func (attached) Attach(piper.Interior) {}

// durableSettings are the settings that Spec.Durable gets. Package durable/edges tests what it does with them.
func durableSettings(t *testing.T) {
	var got piper.DurableSettings
	memory := new(int)
	_ = setting{change: func(s *piper.Spec) {
		s.Durable = func(s piper.DurableSettings) (piper.DurableEdges, error) { got = s; return nil, nil }
	}}.build(t, []proc{{}}, nil, piper.DurableStore("dir"), piper.DurableListen("h:1"), piper.DurableMemory(memory), piper.DrainTimeout(3*time.Second))
	got.Logger = nil
	want := piper.DurableSettings{Store: "dir", Memory: memory, Listen: "h:1", DrainTimeout: 3 * time.Second}
	if got != want {
		t.Errorf("the durable edges get %s, want %s", fmt.Sprint(got), fmt.Sprint(want))
	}
	for _, client := range []any{nil, new(int)} { // a node, or a client
		_ = setting{change: func(s *piper.Spec) {
			s.Durable = func(s piper.DurableSettings) (piper.DurableEdges, error) { got = s; return nil, nil }
			s.Cluster = func(piper.NodeSettings) (piper.Border, error) { return attached{}, nil }
		}}.build(t, []proc{{}}, nil, piper.Client(client))
		if got.Client != (client != nil) || got.Node == got.Client {
			t.Errorf("the durable edges of a client %v get %v and %v", client, got.Node, got.Client)
		}
	}
}

// retriesDiffer has a message whose attempts have a delay with a random part.
func retriesDiffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Time
		fails := proc{watch: &piper.Watch{Then: piper.ThenRetry, Attempts: 6, Delay: time.Second, MaxDelay: time.Second, Jitter: 0.5}, receive: func(c *cell, _ *message) error {
			if at = append(at, time.Now()); len(at) == 6 {
				return nil
			}
			c.countLoss(false)
			return errFailed
		}}
		procs := []proc{feed(0, 1, 1), fails}
		top := supervised(t, onFailure(procs), procs, []edge{{from: 0, to: 1}}, piper.Workers(1))
		top.runWhole(t)
		least := time.Second
		for i := range at[1:] {
			least = min(least, at[i+1].Sub(at[i]))
		}
		if least < 500*time.Millisecond || least > 999*time.Millisecond {
			t.Errorf("the shortest of 5 delays is %v, want 500ms to 1s", least)
		}
	})
}
