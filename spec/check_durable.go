package spec

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/topogen/topogen/spec/finding"
)

// checkDurable reports an invalid section durable, and processors that send one message along
// a durable edge and along another one.
func (b *builder) checkDurable() {
	b.checkAlone()
	d := b.topology.Durable
	if d == nil {
		return
	}
	b.checkStoreNodes(d)
	options := b.store.Value
	if strings.Contains(d.Store.Value, "://") && !isServer(d.Store.Value) {
		b.found.addText(finding.Form, d.Store, "store must be a folder or a URL of the form http://host:port or https://host:port, got "+quoted(d.Store.Value), `write a URL such as "http://10.0.0.1:8001"`)
		return
	}
	if b.section != nil && d.Raft.Pointer == "" && !isURL(d.Store.Value) && !b.found.broken[d.Store.Pointer] {
		b.found.addText(finding.StoreNodes, d.Store, "the nodes of a cluster must share a store, and only one process can open a folder, got "+quoted(d.Store.Value),
			`write "store: {raft: NAME}" with the name of a state machine on the nodes, or the URL of a server`)
	}
	if isURL(d.Store.Value) {
		b.noEffect(options, "another process has the store", "remove it", "listen", "insecure")
		return
	}
	if d.Listen.Pointer == "" {
		b.noEffect(options, "the section has no listen", `write "listen: 127.0.0.1:8001", or remove it`, "tls", "insecure")
		return
	}
	if d.TLS != nil {
		b.noEffect(options, "tls is set", "remove one of them", "insecure")
	}
	host, port, err := net.SplitHostPort(d.Listen.Value)
	if _, badPort := strconv.ParseUint(port, 10, 16); err != nil || host == "" || badPort != nil {
		b.found.addText(finding.Form, d.Listen, "listen must have the form host:port, got "+quoted(d.Listen.Value), `write an address such as "127.0.0.1:8001"`)
	}
}

// isURL reports whether the store is in the process of a server.
func isURL(store string) bool {
	return strings.HasPrefix(store, "http://") || strings.HasPrefix(store, "https://")
}

// isServer reports whether a store is a URL with which a program can reach a server.
func isServer(store string) bool {
	u, err := url.Parse(store)
	if err != nil || !isURL(store) || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return false
	}
	_, err = strconv.ParseUint(u.Port(), 10, 16)
	return u.Port() == "" || err == nil
}

// durableOnly are the options of an edge that need "durable: true".
var durableOnly = []string{"id", "limit"}

// notDurable holds the options that a durable edge cannot have, with the reasons.
var notDurable = []struct{ name, reason string }{
	{"capacity", "its messages wait on the disk"},
	{"full", "its messages wait on the disk"},
	{"shared", "the receiver gets its own copy"},
	{"delivery", "its handler is a durable function, whose finished steps are not repeated"},
	{"input_timeout", "its messages may come from an earlier process"},
	{"arm", "its messages may come from an earlier process"},
}

// checkDurableEdge reports options that an edge has only with, or only without, durable.
func (b *builder) checkDurableEdge(i int, e *Edge) {
	if e.Every > 0 || e.Implied {
		return
	}
	if !e.Durable {
		if options, durable := b.options[i], b.option(i, "durable"); options != nil && (durable == nil || !b.found.exact[durable.Value.Pointer]) {
			b.noEffect(options, "the edge is not durable", `write "durable: true", or remove it`, durableOnly...)
		}
		return
	}
	key := b.option(i, "durable").Key
	if b.store == nil {
		b.found.addText(finding.NoStore, key, "a durable edge must go with the section durable, and the file has none", `write "durable: {store: ./promises}" at the top of the file`)
	}
	for _, option := range notDurable {
		if f := b.option(i, option.name); f != nil {
			b.found.addText(finding.DurableHas, f.Key, fmt.Sprintf("a durable edge must not have %s: %s", option.name, option.reason), "remove it")
		}
	}
	if r := e.Route.Kind; !b.found.exact[e.Route.Pointer] && (r == RouteLocal || r == RouteRange || r == RouteBroadcast || r == RouteNode && b.section != nil) {
		b.found.add(finding.DurableHas, e.Route.At, e.Route.Pointer, fmt.Sprintf("a durable edge must have a key or the route id, got %s: another process may continue the execution", r), "write a key")
	}
	if l := e.Limit; l != nil && l.Concurrency == 0 && l.Rate == (Rate{}) && !b.found.broken[l.Pointer] {
		b.found.add(finding.MissingKey, l.At, l.Pointer, "limit must have concurrency or rate, got neither", `write "concurrency: 1"`)
	}
	b.checkEnd(e, e.From, e.FromText, "from")
	b.checkEnd(e, e.To, e.ToText, "to")
}

// checkEnd reports a processor that a durable edge must not lead from or to.
func (b *builder) checkEnd(e *Edge, processor int, name Text, end string) {
	if processor < 0 {
		return
	}
	p := &b.topology.Processors[processor]
	if p.Machine != nil && end == "from" && !b.found.broken[e.Pointer] {
		b.found.add(finding.MachineEdge, name.At, e.Pointer, fmt.Sprintf("an edge from %s of kind %s must not be durable: its sends never wait", quoted(name.Value), p.Machine.Kind), `remove "durable: true"`)
	}
	if p.Machine != nil || p.External || b.found.broken[p.Pointer+"/blocking"] || b.found.broken[p.Pointer+"/isolation"] || b.found.broken[p.Pointer+"/external"] {
		return // edges of state machines and to external processors have other findings
	}
	why := "a send waits for the disk"
	if end == "to" {
		why = "its handler waits for steps, timers and replies"
	}
	switch {
	case end == "to" && b.section != nil && p.Placement.Kind != EveryNode && !b.misplaced(processor):
		b.found.add(finding.DurableEnd, name.At, e.Pointer, fmt.Sprintf("in a cluster, a durable edge must lead to a processor on every node, because any node continues an execution, and %s %s", quoted(name.Value), p.place()), "remove its placement")
	case p.Isolation == Process:
		b.found.add(finding.DurableEnd, name.At, e.Pointer, fmt.Sprintf("a durable edge must lead %s a processor of this process, and %s runs in its own process", end, quoted(name.Value)), `remove "isolation: process" from it`)
	case !p.Blocking:
		b.found.add(finding.DurableEnd, name.At, e.Pointer, fmt.Sprintf("a durable edge must lead %s a processor with blocking: true, and %s has none: %s", end, quoted(name.Value), why), fmt.Sprintf("write \"blocking: true\" for %s", quoted(name.Value)))
	}
}

// checkAlone reports a message that a processor sends along a durable edge and along another
// edge: one send could not enter both or none.
func (b *builder) checkAlone() {
	type sent struct {
		from    int
		message string
	}
	first := make(map[sent]*Edge)
	durable := make(map[sent]bool)
	for i := range b.topology.Edges {
		e := &b.topology.Edges[i]
		if e.From < 0 || e.Every > 0 || e.Implied || b.found.broken[e.Pointer] {
			continue
		}
		key := sent{e.From, e.Message.Value}
		other := first[key]
		if other == nil {
			first[key], durable[key] = e, e.Durable
			continue
		}
		if e.Durable || durable[key] {
			b.found.addText(finding.DurableAlone, e.Message, fmt.Sprintf("%s must send %s along one edge, because one of them is durable, and line %d has another one", quoted(e.FromText.Value), clip(e.Message.Value), other.At.Line),
				"give the type a second name under messages")
		}
	}
}

// durableAlone returns for each processor whether all its inputs are durable edges.
func (b *builder) durableAlone() []bool {
	durable, others := make([]bool, len(b.topology.Processors)), make([]bool, len(b.topology.Processors))
	for _, e := range b.topology.Edges {
		if e.To >= 0 {
			durable[e.To], others[e.To] = durable[e.To] || e.Durable, others[e.To] || !e.Durable
		}
		if e.From >= 0 && e.Reply.Value != "" && !e.Durable {
			others[e.From] = true
		}
	}
	for _, to := range b.topology.deadLetters() {
		if to >= 0 {
			others[to] = true
		}
	}
	for i := range durable {
		durable[i] = durable[i] && !others[i]
	}
	return durable
}

// checkListen warns of an address that other hosts can reach without TLS.
func (b *builder) checkListen() {
	d := b.topology.Durable
	if d == nil || d.Listen.Value == "" || isURL(d.Store.Value) || d.Insecure || d.TLS != nil {
		return
	}
	if host, _, _ := net.SplitHostPort(d.Listen.Value); !isLoopback(host) {
		b.found.addText(finding.Exposed, d.Listen, "without tls listen must have a loopback address, got "+quoted(d.Listen.Value), `write tls, or "insecure: true" for a network that you trust; a program may also get a token when it starts`)
	}
}

// checkUnusedStore warns of a section that no edge uses.
func (b *builder) checkUnusedStore() {
	if b.store == nil {
		return
	}
	for _, e := range b.topology.Edges {
		if e.Durable {
			return
		}
	}
	b.found.addText(finding.UnusedStore, b.store.Key, "no edge is durable, so the section durable has no effect", `write "durable: true" on an edge, or remove the section`)
}
