package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// trace is a hash of all steps, and the last of them.
type trace struct {
	hash  uint64
	last  [traceShown]traceEntry
	count int // of all
	kept  int // of the steps that are shown: not those of the failure detection, and of a core without mail
}

const traceShown = 120 // enough to see the last seconds of a small cluster

type traceEntry struct {
	at      time.Duration
	kind    byte
	a, b, c int
	text    string
}

func (t *trace) add(e traceEntry) {
	for _, v := range [...]uint64{uint64(e.at), uint64(e.kind), uint64(e.a), uint64(e.b), uint64(e.c)} {
		t.hash = (t.hash ^ v) * 0x9e3779b97f4a7c15
		t.hash ^= t.hash >> 29
	}
	for i := range len(e.text) {
		t.hash = (t.hash ^ uint64(e.text[i])) * 0x100000001b3
	}
	if t.count++; e.kind != kindProbe && (e.kind != choiceCore || e.b > 0) {
		t.last[t.kept%traceShown] = e
		t.kept++
	}
}

func (t *trace) step(at time.Duration, kind byte, a, b, c int) {
	t.add(traceEntry{at: at, kind: kind, a: a, b: b, c: c})
}

func (t *trace) turn(at time.Duration, node int, processor string, instance int) {
	t.add(traceEntry{at: at, kind: choiceTurn, a: node, b: instance, text: processor})
}

func (t *trace) note(at time.Duration, text string) { t.add(traceEntry{at: at, text: text}) }

func (t *trace) String() string {
	var b strings.Builder
	for i := max(0, t.kept-traceShown); i < t.kept; i++ {
		e := &t.last[i%traceShown]
		fmt.Fprintf(&b, "%v ", e.at)
		switch e.kind {
		case choiceCore:
			fmt.Fprintf(&b, "%s: the core gets mail", nodeName(e.a))
		case choiceTurn:
			fmt.Fprintf(&b, "%s: turn of %s/%d", nodeName(e.a), e.text, e.b)
		case choiceSend:
			fmt.Fprintf(&b, "%s: p%d sends", nodeName(e.a), e.b)
		case choiceDeliver:
			fmt.Fprintf(&b, "%s -> %s: %d bytes arrive", nodeName(e.a), nodeName(e.b), e.c)
		case kindTransmit:
			fmt.Fprintf(&b, "%s -> %s: %d bytes", nodeName(e.a), nodeName(e.b), e.c)
		default:
			b.WriteString(e.text)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

const (
	kindTransmit = 'x' // a node sends a frame
	kindProbe    = 'p' // a message of the failure detection arrives
)

// simLog makes each line of a log a part of the trace, and an error a fault.
type simLog struct{ sim *simulation }

func (l simLog) Enabled(context.Context, slog.Level) bool { return true }
func (l simLog) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l simLog) WithGroup(string) slog.Handler            { return l }

func (l simLog) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	b.WriteString(r.Message)
	r.Attrs(func(a slog.Attr) bool {
		b.WriteString(" " + a.String())
		return true
	})
	if l.sim.trace.note(l.sim.now, b.String()); r.Level >= slog.LevelError && l.sim.undecodable == nil {
		l.sim.fault("%s", b.String())
	}
	return nil
}

// describe describes the state of the node in a failure.
func (n *simNode) describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", n.name, simStates[n.state])
	if n.frozen {
		b.WriteString(", frozen")
	}
	if n.resumeAt > n.sim.now {
		fmt.Fprintf(&b, ", paused until %v", n.resumeAt)
	}
	if n.stopped {
		b.WriteString(", stopped")
	}
	if n.core == nil || n.top == nil {
		b.WriteByte('\n')
		return b.String()
	}
	if n.state == simRunning {
		for i := range n.top.border.Groups() {
			g := n.top.border.Group(i)
			fmt.Fprintf(&b, ", group %d in phase %d quiet %v turns %d", i, g.Phase, g.Quiet, g.Turns)
		}
	}
	b.WriteByte('\n')
	for p := range n.core.nodes() {
		kept := 0
		for _, pair := range p.out {
			kept += len(pair.kept)
		}
		v := p.session.Stats()
		fmt.Fprintf(&b, "  %s: found %v, reachable %v, draining %v, %d chunks kept, %d pairs wait, session: %d pending, %d received, %d refused\n",
			p.name, p.found, p.reachable, p.draining, kept, len(p.waiting), v.Pending, v.MessagesReceived, v.Malformed)
	}
	for i, e := range n.top.pool.Snapshot().Edges {
		if e.Len > 0 || e.Waiting > 0 {
			fmt.Fprintf(&b, "  e%d: sent %d, received %d, dropped %d, len %d, waiting %d\n", i, e.Sent, e.Received, e.Dropped, e.Len, e.Waiting)
		}
	}
	return b.String()
}
