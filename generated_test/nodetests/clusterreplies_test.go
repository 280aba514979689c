package nodetests_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/topogen/topogen/generated_test/clusterreplies"
	"github.com/topogen/topogen/generated_test/clustertest"
	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

// repliesPlace spreads the instances. Patrons and desks with the same index are on different nodes.
func repliesPlace(processor, instance int) int {
	switch clusterreplies.ProcessorIndex(processor) {
	case clusterreplies.ProcessorApi:
		return clustertest.Everywhere
	case clusterreplies.ProcessorOffice:
		return 1
	case clusterreplies.ProcessorAttic:
		return 2
	case clusterreplies.ProcessorPatron:
		return instance + 1
	}
	return instance
}

const (
	repliesCallers = 4  // on each node
	repliesAsks    = 40 // by each caller
)

// repliesCounts are the outcomes that the callers have seen.
type repliesCounts struct{ hurried, refused, stored, evicted atomic.Int64 }

// TestClusterRepliesReplies asks from several goroutines on each node.
func TestClusterRepliesReplies(t *testing.T) {
	t.Parallel()
	clustertest.Each(t, repliesRun)
}

func repliesRun(t *testing.T, n int, workers pool.Option) {
	var c repliesCounts
	make := func(_ int, opts ...pool.Option) (*clusterreplies.Topology, error) {
		return clusterreplies.New(clusterreplies.Processors{}, append(opts, workers)...)
	}
	c.check(t, clustertest.Run(t, n, repliesPlace, make, func(nodes []*clusterreplies.Topology) { c.askAll(t, nodes) }))
}

// TestClusterRepliesCluster asks on nodes of package cluster.
func TestClusterRepliesCluster(t *testing.T) {
	t.Parallel()
	clustertest.Bubble(t, func(t *testing.T) {
		var c repliesCounts
		make := func(_ int, opts ...pool.Option) (*clusterreplies.Topology, error) {
			return clusterreplies.New(clusterreplies.Processors{}, opts...)
		}
		c.check(t, clustertest.RunCluster(t, 3, make, func(nodes []*clusterreplies.Topology) { c.askAll(t, nodes) }))
	})
}

// askAll asks from several goroutines on each node.
func (c *repliesCounts) askAll(t *testing.T, nodes []*clusterreplies.Topology) {
	var all sync.WaitGroup
	for i, top := range nodes {
		all.Go(func() {
			var own sync.WaitGroup
			for k := range repliesCallers {
				own.Go(func() { c.ask(t, fmt.Sprint(i, "/", k), top.Api()) })
			}
			own.Wait()
			top.Api().Close()
		})
	}
	all.Wait()
}

// check compares what the callers have seen with what the instances have counted.
func (c *repliesCounts) check(t *testing.T, nodes []*clusterreplies.Topology) {
	t.Helper()
	n := len(nodes)
	total := n * repliesCallers * repliesAsks
	clerks, desks := 0, clusterreplies.Desk{}
	for _, top := range nodes {
		for i := range 4 {
			if d := top.Desk(i); d != nil {
				desks.Asked += d.Asked
				desks.Checked += d.Checked
				desks.Riddles += d.Riddles
				desks.Wrong = append(desks.Wrong, d.Wrong...)
			}
		}
		for i := range 3 {
			if c := top.Clerk(i); c != nil {
				clerks += c.Answered
			}
			if p := top.Patron(i); p != nil && (len(p.Wrong) > 0 || p.Answers["ask"] != clusterreplies.Asks || p.Answers["check"] != clusterreplies.Asks) {
				t.Errorf("patron %d: %+v", i, p)
			}
		}
		if o := top.Office(0); o != nil && (o.Notes != total || o.Orders != 2*total || o.Hurries != int(c.hurried.Load())) {
			t.Errorf("office: %+v, want %d notes, %d orders and %d hurries", o, total, 2*total, c.hurried.Load())
		}
		if a := top.Attic(0); a != nil && a.Answered != int(c.stored.Load()) {
			t.Errorf("attic: %d answers, but callers got %d", a.Answered, c.stored.Load())
		}
	}
	if desks.Asked != 3*clusterreplies.Asks || desks.Checked != 3*clusterreplies.Asks || desks.Riddles != 3*clusterreplies.Asks || len(desks.Wrong) > 0 {
		t.Errorf("desks: %+v", desks)
	}
	if clerks != total-total/2 {
		t.Errorf("clerks: %d answers, want %d", clerks, total-total/2)
	}
	if c.hurried.Load()+c.refused.Load() != int64(total) || c.stored.Load()+c.evicted.Load() != int64(total) {
		t.Errorf("of %d asks, %d were answered and %d refused; %d were answered and %d evicted",
			total, c.hurried.Load(), c.refused.Load(), c.stored.Load(), c.evicted.Load())
	}
}

// ask asks along every edge and checks the replies.
func (c *repliesCounts) ask(t *testing.T, by string, api *clusterreplies.ApiSender) {
	ctx := t.Context()
	for i := range repliesAsks {
		id := fmt.Sprint(by, "/", i)
		query := clusterreplies.Query{ID: id, Text: strings.Split(id, "/")}
		want := clusterreplies.Answer{ID: id, Text: strings.ReplaceAll(id, "/", " ")}
		if got, err := api.AskQueryToDesk(ctx, query); got != want || err != nil {
			t.Errorf("desk: %+v, %v; want %+v", got, err, want)
		}
		want.By = -1
		if got, err := api.AskQueryToOffice(ctx, query); got != want || err != nil {
			t.Errorf("office: %+v, %v; want %+v", got, err, want)
		}
		c.askClerk(t, i, query, api)
		if err := api.SendNote(ctx, clusterreplies.Note{N: i}); err != nil {
			t.Error(err)
		}
		if err := api.SendOrder(ctx, clusterreplies.Order{N: -i}); err != nil { // its reply is not needed
			t.Error(err)
		}
		if got, err := api.AskOrder(ctx, clusterreplies.Order{N: i}); got.N != i || err != nil {
			t.Errorf("receipt %+v, %v; want %d", got, err, i)
		}
		c.count(t, &c.hurried, &c.refused, func() (bool, error) {
			got, err := api.AskHurry(ctx, clusterreplies.Hurry{N: i})
			return got.N == i, err
		})
		c.count(t, &c.stored, &c.evicted, func() (bool, error) {
			got, err := api.AskQueryToAttic(ctx, query)
			return got.ID == id && got.By == -2, err
		})
	}
}

// askClerk asks a clerk. Every second query fails.
func (c *repliesCounts) askClerk(t *testing.T, i int, query clusterreplies.Query, api *clusterreplies.ApiSender) {
	query.To = i % 3
	want := clusterreplies.Answer{ID: query.ID, Text: strings.Join(query.Text, " "), By: query.To}
	if i%2 == 0 {
		query.Text, want = nil, clusterreplies.Answer{}
	}
	got, err := api.AskQueryToClerk(t.Context(), query)
	if got != want || errors.Is(err, topo.ErrFailed) != (i%2 == 0) || err != nil && !strings.Contains(err.Error(), clusterreplies.ErrUnknown.Error()) {
		t.Errorf("clerk: %+v, %v; want %+v", got, err, want)
	}
}

// count counts a reply, or topo.ErrFull.
func (c *repliesCounts) count(t *testing.T, answered, full *atomic.Int64, ask func() (ok bool, err error)) {
	switch ok, err := ask(); {
	case err == nil && ok:
		answered.Add(1)
	case errors.Is(err, topo.ErrFull):
		full.Add(1)
	default:
		t.Errorf("the reply is right: %v; error: %v", ok, err)
	}
}

// TestClusterRepliesUnknownClerk asks an instance that does not exist.
func TestClusterRepliesUnknownClerk(t *testing.T) {
	make := func(_ int, opts ...pool.Option) (*clusterreplies.Topology, error) {
		return clusterreplies.New(clusterreplies.Processors{}, opts...)
	}
	clustertest.Run(t, 2, repliesPlace, make, func(nodes []*clusterreplies.Topology) {
		for _, top := range nodes {
			if _, err := top.Api().AskQueryToClerk(t.Context(), clusterreplies.Query{To: 3}); !errors.Is(err, topo.ErrNoInstance) {
				t.Errorf("error: %v", err)
			}
			top.Api().Close()
		}
	})
}
