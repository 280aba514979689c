package graph

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// shop is a small service with everything that a picture can show.
func shop() Graph {
	return Graph{
		Name: "orders",
		Nodes: []Node{
			{Name: "feed", Type: "Feed", Instances: 1},
			{Name: "parser", Type: "Parser", Instances: 1},
			{Name: "pricing", Type: "example.com/shop/pricing.Engine", Instances: 8},
			{Name: "store", Type: "Store", Instances: 4, Blocking: true},
			{Name: "audit", Type: "Audit", Instances: 1},
			{Name: "api", Instances: 1, External: true},
			{Name: "every 1s", Instances: 1, Timer: true},
		},
		Edges: []Edge{
			{From: 0, To: 1, Message: "Raw"},
			{From: 1, To: 2, Message: "Order", Note: "key Account"},
			{From: 1, To: 4, Message: "Rejected"},
			{From: 2, To: 4, Message: "Priced", Note: "capacity 4096"},
			{From: 2, To: 3, Message: "Priced", Note: "key Account"},
			{From: 5, To: 2, Message: "Quote", Reply: "Price", Note: "key Account, timeout 2s"},
			{From: 6, To: 4, Message: "Tick"},
		},
	}
}

// loop is five processors with cycles, a self edge and parallel edges.
func loop() Graph {
	g := Graph{Name: "feedback"}
	for _, name := range []string{"source", "model", "solver", "judge", "sink"} {
		g.Nodes = append(g.Nodes, Node{Name: name, Type: name, Instances: 1})
	}
	g.Nodes[2].Instances = 16
	g.Edges = []Edge{
		{From: 0, To: 1, Message: "Sample"},
		{From: 1, To: 2, Message: "Task", Note: "key ID"},
		{From: 1, To: 2, Message: "Cancel", Note: "broadcast"},
		{From: 2, To: 3, Message: "Result"},
		{From: 3, To: 1, Message: "Correction", Note: "drop-oldest 64"},
		{From: 2, To: 2, Message: "Retry", Note: "local"},
		{From: 3, To: 4, Message: "Answer"},
		{From: 3, To: 2, Message: "Again", Note: "id Worker"},
	}
	return g
}

// company is a topology as people write them: stages, most edges from one to
// the next, some that skip, some that return.
func company(size int, seed uint64) Graph {
	r := rand.New(rand.NewPCG(seed, uint64(size)))
	nouns := []string{"feed", "parser", "router", "pricing", "ledger", "audit", "index", "cache", "notify", "score", "merge", "enrich", "archive", "session", "limits"}
	messages := []string{"Raw", "Order", "Priced", "Rejected", "Account", "Entry", "Lookup", "Hit", "Alert", "Score", "Batch", "SettlementReport"}
	notes := []string{"", "", "", "key Account", "key Order.ID", "broadcast", "drop-oldest 64", "key Symbol, capacity 4096", "fail 1024"}
	g := Graph{Name: fmt.Sprintf("company-%d", size)}
	stages := 3 + size/9
	stage := func(i int) int { return i * stages / size }
	for i := range size {
		n := Node{Name: nouns[i%len(nouns)], Instances: 1}
		if i >= len(nouns) {
			n.Name = fmt.Sprintf("%s-%d", n.Name, i/len(nouns)+1)
		}
		n.Type = "flow." + n.Name
		switch r.IntN(6) {
		case 0:
			n.Instances = 1 << (1 + r.IntN(6))
		case 1:
			n.Blocking = r.IntN(2) == 0
		}
		if stage(i) == 0 && r.IntN(3) == 0 {
			n.External, n.Type = true, ""
		}
		g.Nodes = append(g.Nodes, n)
	}
	add := func(from, to int) {
		e := Edge{From: from, To: to, Message: messages[r.IntN(len(messages))], Note: notes[r.IntN(len(notes))]}
		if r.IntN(12) == 0 {
			e.Reply = messages[r.IntN(len(messages))]
		}
		g.Edges = append(g.Edges, e)
	}
	for i := range size {
		if stage(i) == 0 {
			continue
		}
		for range 1 + r.IntN(2) {
			from := r.IntN(size)
			for stage(from) != stage(i)-1 {
				from = r.IntN(size)
			}
			add(from, i)
		}
		if r.IntN(10) == 0 {
			from := r.IntN(i)
			add(from, i)
		}
		if r.IntN(14) == 0 {
			add(i, r.IntN(i+1))
		}
	}
	for i := range 1 + size/20 {
		g.Nodes = append(g.Nodes, Node{Name: fmt.Sprintf("every %ds", i+1), Timer: true, Instances: 1})
		g.Edges = append(g.Edges, Edge{From: len(g.Nodes) - 1, To: r.IntN(size), Message: "Tick"})
	}
	return g
}

// tangle is a random graph.
func tangle(nodes, edges int, seed uint64) Graph {
	r := rand.New(rand.NewPCG(seed, 1))
	g := Graph{Name: "tangle"}
	for i := range nodes {
		g.Nodes = append(g.Nodes, Node{
			Name: fmt.Sprint("node", i), Type: []string{"", "T", "a/b.LongerType"}[r.IntN(3)],
			Instances: r.IntN(4), Blocking: r.IntN(5) == 0, External: r.IntN(5) == 0, Timer: r.IntN(9) == 0,
			Isolated: i%5 == 1, Group: []string{"", "core", "a-group-with-a-very-long-name"}[i%3],
		})
	}
	for range edges {
		e := Edge{From: r.IntN(nodes), To: r.IntN(nodes)}
		e.Message = []string{"", "M", "Message", "AMessageWithALongName"}[r.IntN(4)]
		e.Note = []string{"", "", "key A, drop-oldest 64", "broadcast"}[r.IntN(4)]
		e.Reply = []string{"", "", "", "Answer"}[r.IntN(4)]
		e.DeadLetter = e.Message == ""
		g.Edges = append(g.Edges, e)
	}
	return g
}

// chain is a long pipeline with an exit at every step.
func chain(length int) Graph {
	g := Graph{Name: "chain", Nodes: []Node{{Name: "errors", Type: "Errors", Instances: 1, Blocking: true}}}
	for i := range length {
		g.Nodes = append(g.Nodes, Node{Name: fmt.Sprint("step-", i), Type: fmt.Sprint("Step", i), Instances: 1 + i%3})
		if i > 0 {
			g.Edges = append(g.Edges, Edge{From: i, To: i + 1, Message: fmt.Sprint("Part", i), Note: "key ID"})
		}
		if i%3 == 2 {
			g.Edges = append(g.Edges, Edge{From: i + 1, To: 0, Message: "Failure"})
		}
	}
	g.Edges = append(g.Edges, Edge{From: length - 1, To: 3, Message: "Again", Note: "drop-oldest 64"})
	return g
}

// fan is one source with many receivers.
func fan(size int) Graph {
	g := Graph{Name: "fan", Nodes: []Node{{Name: "source"}}}
	for i := range size {
		g.Nodes = append(g.Nodes, Node{Name: fmt.Sprint("sink-", i)})
		g.Edges = append(g.Edges, Edge{To: i + 1, Message: "M"})
	}
	return g
}

// loaded gives a graph a load, with the longest texts among others.
func loaded(g Graph, seed uint64) Graph {
	r := rand.New(rand.NewPCG(seed, 2))
	g.Nodes, g.Edges = slices.Clone(g.Nodes), slices.Clone(g.Edges)
	g.Load = &Load{Until: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC), Elapsed: 12345 * time.Millisecond, Workers: 2}
	count := func() uint64 { return r.Uint64() >> r.IntN(64) } // from 0 to very large
	if seed%2 == 0 {                                           // as in a topology that runs
		count = func() uint64 { return uint64(r.IntN(40_000_000)) * uint64(r.IntN(5)) / 4 }
	}
	spread := func() Spread {
		mean := r.IntN(1001)
		return Spread{mean, mean + r.IntN(1001-mean)}
	}
	for i := range g.Nodes {
		if n := &g.Nodes[i]; !n.Timer && !n.External {
			n.Load = &NodeLoad{Busy: spread(), Paused: spread(), Received: count()}
			if n.Instances <= 1 {
				n.Load.Busy.Max, n.Load.Paused.Mean = n.Load.Busy.Mean, n.Load.Paused.Max
			}
			if r.IntN(2) == 0 {
				n.Load.Paused = Spread{}
			}
			if n.Watch != nil || n.Isolated {
				n.Load.Faults = &FaultFigures{Restarts: count(), Abandoned: 1, DeadLetters: count()}
			}
		}
	}
	for i := range g.Edges {
		e := &g.Edges[i]
		e.Load = &EdgeLoad{Capacity: 1 << r.IntN(13), Queues: 1 + r.IntN(2)*r.IntN(64), Sent: count()}
		e.Load.Len = r.IntN(e.Load.Capacity + 1)
		if r.IntN(4) == 0 {
			e.Load.Dropped = count()
		}
	}
	return g
}

// hostile has names with special characters of the formats.
func hostile() Graph {
	names := []string{
		`"]; click n0 "javascript:alert(1)`, "</text><script>alert(1)</script>", "a\nb\r\nc", "]]>", "-->", `\" \N \`,
		"&amp; &quot; #quot; #35;", "`code` **bold** _it_", "1. item", "- item", "end", "\xff\x00\x07\u202e", "日本語の名前", "", "%d%s{}|()",
		"a name so long that no box on any page would want to hold all of it, and then some",
	}
	g := Graph{Name: names[1] + names[0] + names[2]}
	for i, n := range names {
		g.Nodes = append(g.Nodes, Node{Name: n, Type: n, Instances: i, Timer: i%5 == 4, Group: n, Isolated: true})
		g.Edges = append(g.Edges, Edge{From: i, To: (i + 1) % len(names), Message: n, Reply: n, Note: n + ", " + n})
	}
	return g
}
