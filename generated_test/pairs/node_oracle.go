package pairs

import (
	"slices"
	"strings"

	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/pool"
)

// examine compares the ledger with the figures of all processes of all nodes.
func (f *fleet) examine(events []Event) []string {
	x := &examination{Case: f.c, run: f.r, events: withoutRepetitions(events), err: f.result(), copies: make(map[copyOf]*copyEvents), accepted: make(map[string]int), unsure: make(map[string]int), lost: make(map[string]uint64)}
	for _, p := range f.processes {
		s := p.top.Snapshot()
		x.balance(s.Edges)
		x.figures = sum(x.figures, s)
	}
	x.loses = slices.ContainsFunc(f.processes, func(p *nodeProcess) bool { return p.crashed || p.alone })
	x.count()
	x.ends()
	if x.isWhole() {
		for _, e := range x.figures.Edges {
			x.nodeEdge(e)
		}
		for _, p := range x.figures.Processors {
			x.processor(p)
		}
	}
	if f.r.Fault != Crash {
		x.order()
		x.result()
		if !x.loses {
			x.lifecycles()
		}
	}
	return x.problems
}

// balance checks that the figures of each edge of a process add up.
func (x *examination) balance(edges []pool.EdgeFigures) {
	for _, e := range edges {
		if e.Sent != e.Received+e.Dropped+uint64(e.Len) {
			x.problem("%s: %d sent, but %d received, %d dropped and %d queued", edgeName(e), e.Sent, e.Received, e.Dropped, e.Len)
		}
	}
}

func edgeName(e pool.EdgeFigures) string {
	if e.From == "" {
		return "timer." + e.Message
	}
	return e.From + "." + e.Message
}

// sum adds the figures of two processes.
func sum(a, b pool.Snapshot) pool.Snapshot {
	if a.Edges == nil {
		return b
	}
	for i, e := range b.Edges {
		s := &a.Edges[i]
		s.Sent, s.Received, s.Dropped, s.Len = s.Sent+e.Sent, s.Received+e.Received, s.Dropped+e.Dropped, s.Len+e.Len
	}
	for i, p := range b.Processors {
		addFaults(a.Processors[i].Faults, p.Faults)
	}
	addFaults(a.Faults, b.Faults)
	return a
}

func addFaults(a, b *piper.FaultFigures) {
	if a == nil || b == nil {
		return
	}
	a.Dropped, a.DeadLetters, a.GaveUp = a.Dropped+b.Dropped, a.DeadLetters+b.DeadLetters, a.GaveUp+b.GaveUp
}

// nodeEdge compares the figures of an edge with the ledger. An edge with two ends has figures on two
// nodes: a message counts where it was sent.
func (x *examination) nodeEdge(e pool.EdgeFigures) {
	name := edgeName(e)
	if e.Len != 0 && !x.loses {
		x.problem("%s: %d are queued at the end", name, e.Len)
	}
	late := x.late(e)
	if e.Dropped > late && !x.mayExpire() && x.neverDrops(e) {
		x.problem("%s: %d are dropped", name, e.Dropped)
	}
	if n := x.accepted[name]; x.sendsAreRecorded(name) && (e.Sent < uint64(n) || e.Sent-late > uint64(n+x.unsure[name])) {
		x.problem("%s: the ledger has %d accepted copies, and the figures %d", name, n, e.Sent)
	}
	if e.Message == "DeadLetter" {
		return
	}
	begun, calls := uint64(0), uint64(0) // with a crash, a message may be handled twice
	for c, n := range x.copies {
		if c.edge == name && (n.began > 0 || n.letters > 0) {
			begun++
			calls += uint64(max(1, n.began, x.sendsOf(c)))
		}
	}
	if x.run.Fault != Crash {
		calls = begun
	}
	least, most := e.Received-late, e.Received
	switch {
	case x.goesEverywhere(name):
		least, most = x.everywhere(e)
	case x.gaveUp() && begun < least:
		x.lost[e.To] += least - begun
		return // processor checks that these are counted
	}
	if x.mayExpire() {
		most = max(most, e.Sent) // a message that is dropped or queued at the end may have been handled
	}
	if calls < least || begun > most {
		x.problem("%s: the ledger has %d copies that were given to a handler, and the figures %d to %d", name, begun, least, most)
	}
}

// mayExpire reports whether messages may be dropped because their node cannot be reached for longer
// than retry.timeout, or because its process has ended. If retry.timeout is short, a node may start too
// late.
func (x *examination) mayExpire() bool {
	return x.run.Fault == Crash || x.run.Fault == Leave && x.loses || x.Options["resend"] == "short"
}

// late returns the number of messages that the next process of a node has sent to instances that had
// finished. Their node counts them too, as dropped, and the sending node counts them as received.
func (x *examination) late(e pool.EdgeFigures) uint64 {
	n := uint64(x.accepted[edgeName(e)])
	if x.run.Fault != Leave && x.run.Fault != Crash || !x.sendsAreRecorded(edgeName(e)) || e.Sent < n {
		return 0
	}
	return min(e.Sent-n, e.Dropped, e.Received)
}

// handledMost returns how often a copy may be handled.
func (x *examination) handledMost(edge string) int {
	if from, _, _ := strings.Cut(edge, "."); x.run.Fault == Crash && (x.Options["delivery"] != "at-most-once" || receiver(edge) == from || edge == "work.Rep") {
		return 2 // by the process that has crashed, and by the next one
	}
	if strings.HasPrefix(edge, "timer.") && x.run.Fault == Leave {
		return 2 // the next process counts its ticks from 1
	}
	return 1
}

// goesEverywhere reports whether the messages of an edge go to all instances on all nodes.
func (x *examination) goesEverywhere(edge string) bool {
	switch edge {
	case "work.Out":
		return x.Options["sink.place"] == "every-node"
	case "feed.One", "feed.Two", "other.Two":
		return x.Options["work.place"] == "every-node" && x.Options["route"] == "broadcast"
	}
	return false
}

// everywhere returns the least and the largest number of copies that may be given to a handler, along
// an edge to all instances on all nodes. A copy that is dropped is for one instance, or for all other nodes.
func (x *examination) everywhere(e pool.EdgeFigures) (least, most uint64) {
	here := uint64(x.instances(e.To))
	there := here * uint64(x.nodes()-1)
	most = e.Sent / (here + 1) * (here + there)
	if lost := e.Dropped * there; lost < most && !x.gaveUp() && x.run.Fault != Crash {
		least = most - lost
	}
	return least, most
}
