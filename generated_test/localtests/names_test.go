package localtests_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/topogen/topogen/generated_test/names"
	"github.com/topogen/topogen/runtime/graph"
)

func TestNamesRun(t *testing.T) {
	top, err := names.New(names.Processors{})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- top.Run(t.Context()) }()
	api := top.Api()
	for _, ask := range []func(context.Context, names.Quote) (names.Price, error){api.AskQuote, api.AskQuoteToPricing} {
		if price, err := ask(t.Context(), names.Quote{Account: "ann"}); price.Cents != 250 || err != nil {
			t.Error(price, err)
		}
	}
	api.Close()
	api.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if top.Audit(0).Orders != 1 || top.Snapshot().Edges[names.EdgePricingAuditOrder].Received != 1 {
		t.Error(top.Audit(0), top.Snapshot())
	}
}

func TestNamesTree(t *testing.T) {
	top, err := names.New(names.Processors{})
	if err != nil {
		t.Fatal(err)
	}
	var g *graph.Graph[names.ProcessorIndex, names.EdgeIndex] = top.Tree()
	t.Cleanup(top.Stepper(1).Close)
	feed, raw := g.Processor(names.ProcessorFeed), g.Edge(names.EdgeFeedParserRaw)
	if err := feed.Ping(); err != nil || raw.Sent() != 1 || raw.Len() != 1 {
		t.Error(err, raw.Sent(), raw.Len())
	}
	if ok, err := raw.Deliver(); !ok || err != nil || raw.Len() != 0 || raw.Received() != 1 || raw.Dropped() != 0 {
		t.Error(ok, err, raw.Len(), raw.Received(), raw.Dropped())
	}
	api, ok := g.ProcessorIndex("api")
	for _, c := range []struct{ got, want any }{
		{[]any{api, ok, names.ProcessorApi, int(names.ProcessorApi)}, "[api true api 4]"},
		{[]any{g.ProcessorsCount(), g.EdgesCount(), int(names.EdgeEveryAudit1s)}, "[5 6 5]"},
		{g.IncomingEdges(names.ProcessorAudit), "[parser -> audit: Rejected pricing -> audit: Order every 1s -> audit]"},
		{g.OutgoingEdges(names.ProcessorParser), "[parser -> pricing: Order parser -> audit: Rejected]"},
		{g.ConnectingEdges(names.ProcessorParser, names.ProcessorAudit), "[parser -> audit: Rejected]"},
		{g.ConnectingEdges(names.ProcessorAudit, names.ProcessorParser), "[]"},
		{[]any{feed.Name(), feed.Instances(), feed.Worker(0), feed.Busy() >= 0}, "[feed 1 0 true]"},
		{[]any{raw.From(), raw.To(), raw.Message()}, "[feed parser Raw]"},
	} {
		if got := fmt.Sprint(c.got); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}
