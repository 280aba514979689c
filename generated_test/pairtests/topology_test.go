package pairtests_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// yaml writes the topology file of a row.
func (r row) yaml(name string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# A topology of pairs of options. Package pairtests generates it.\nversion: 1\nname: %s\n", name)
	if r.isCluster() {
		b.WriteString(r.cluster())
	}
	b.WriteString("processors:\n")
	r.processor(&b, "feed", r.feed())
	if r["two"] == "other" {
		r.processor(&b, "other", []string{"new: NewOther"})
	}
	r.processor(&b, "work", r.work())
	r.processor(&b, "sink", r.sink())
	if r["letters"] == "yes" {
		r.processor(&b, "morgue", []string{"new: NewMorgue"})
	}
	if r["machine"] != "no" {
		r.processor(&b, "ledger", r.machine())
	}
	r.beside(&b)
	if r["durable"] != "no" {
		b.WriteString("durable: {store: promises, lease: 20s}\n")
	}
	b.WriteString("messages: {Out: github.com/topogen/topogen/generated_test/pairs.Out}\nedges:\n")
	for _, e := range r.edges() {
		b.WriteString("  - " + e + "\n")
	}
	if r["group"] != "no" {
		shutdown := ", shutdown: 50ms"
		if r["group"] == "one-for-one" {
			shutdown = ""
		}
		fmt.Fprintf(&b, "groups:\n  all: {processors: [sink, work], strategy: %s, intensity: 1000, period: 1s%s}\n", r["group"], shutdown)
	}
	switch r["workers"] {
	case "one":
		b.WriteString("pool: {workers: 1, batch: 1, rebalance: 0, drain_timeout: 5s, message_limit: 1MiB}\nhealth_check_interval: 10ms\n")
	case "many":
		b.WriteString("pool: {workers: 4, batch: 3, rebalance: 1ms, cycle_limit: 100000}\n")
	}
	if r["errors"] == "yes" {
		b.WriteString("errors: {path: errors.top, top: 5, keep: 1m, dump_every: 1ms}\n")
	}
	return b.String()
}

func (r row) processor(b *strings.Builder, name string, options []string) {
	options = append(options, r.placement(name)...)
	fmt.Fprintf(b, "  %s: {%s}\n", name, strings.Join(options, ", "))
}

func (r row) feed() []string {
	var list []string
	if r["feed"] == "outside" {
		list = append(list, "external: true")
	} else {
		list = append(list, "new: NewFeed")
	}
	if r["feed.instances"] != "1" {
		list = append(list, "instances: "+r["feed.instances"])
	}
	if r["feed"] != "outside" && r.isDurable("feed", "One") {
		list = append(list, "blocking: true")
	}
	return list
}

func (r row) work() []string {
	list := []string{"new: NewWork"}
	if r["work.instances"] != "1" {
		list = append(list, "instances: "+r["work.instances"])
	}
	list = append(list, place(r["work"])...)
	switch r["restart"] {
	case "none":
	case "limited":
		list = append(list, "restart: {policy: on-failure, max_restarts: 2, window: 1m}")
	case "always-limited":
		list = append(list, "restart: {policy: always, max_restarts: 5}")
	case "delayed":
		list = append(list, "restart: {policy: on-failure, max_restarts: 1000, delay: 1ms, max_delay: 4ms, jitter: 0.5}")
	default:
		list = append(list, "restart: "+r["restart"])
	}
	switch r["health"] {
	case "timeout":
		list = append(list, "health: {timeout: 500ms}")
	case "startup":
		list = append(list, "health: {timeout: 500ms, startup_timeout: 5s}")
	}
	onError := map[string]string{"none": "", "stop": "then: stop", "skip": "then: skip", "retry": "then: retry",
		"delayed": "then: retry, max_attempts: 4, delay: 1ms, max_delay: 2ms, jitter: 0.5", "attempts": "then: stop, max_attempts: 2"}[r["on_error"]]
	if r["letters"] == "yes" {
		onError = strings.TrimPrefix(onError+", dead_letter: morgue", ", ")
	}
	if then, ok := strings.CutPrefix(onError, "then: "); ok && !strings.Contains(onError, ",") {
		list = append(list, "on_error: "+then)
	} else if onError != "" {
		list = append(list, "on_error: {"+onError+"}")
	}
	return list
}

func (r row) sink() []string {
	list := append([]string{"type: Sink", "new: NewSink", "with: {size: 3, wait: 1s}"}, place(r["sink"])...)
	switch r["sink"] {
	case "watched":
		list = append(list, "restart: on-failure", "on_error: {then: stop, max_attempts: 3}")
	case "never":
		list = append(list, "isolation: goroutine", "restart: {policy: never}")
	}
	return list
}

// machine returns the options of a state machine whose controller is work.
func (r row) machine() []string {
	list := []string{"kind: fsm", "state: Marks", "update: Mark", "result: Count", "controller: work"}
	if r["revert"] == "yes" {
		list = append(list, "revert: true")
	}
	second := r["machine.form"] == "second"
	switch {
	case r["machine"] == "several" && second:
		list = append(list, "instances: 2", "route: local")
	case r["machine"] == "several":
		list = append(list, "instances: 2", "key: ID")
	case r["machine"] == "log" && second:
		list = append(list, "log: {path: ledger, sync: interval, interval: 1ms}")
	case r["machine"] == "log":
		list = append(list, "log: {path: ledger, sync: always, snapshot_every: 20}")
	case r["machine"] == "unsynced":
		list = append(list, "log: {path: ledger, sync: none}")
	case r["machine"] == "raft" && second:
		list = append(list, "log: {path: ledger}", "raft: {forward: false, tls: {cert: node.pem, key: node.key, ca: ca.pem}, trust_domain: pairs.example, "+peers+"}")
	case r["machine"] == "raft":
		list = append(list, "log: {path: ledger, snapshot_every: 20}", "raft: {group: marks, insecure: true, election_timeout: 500ms, heartbeat: 50ms, "+peers+"}")
	}
	return list
}

const peers = `peers: {n1: "10.0.0.1:7101", n2: "10.0.0.2:7101", n3: "10.0.0.3:7101"}`

func (r row) hasLog() bool {
	return slices.Contains([]string{"log", "unsynced", "raft"}, r["machine"])
}

func (r row) isReplicated() bool { return r["machine"] == "raft" }

func (r row) isApplied() bool { return r["machine"] != "no" && r["applied"] == "yes" }

// place returns the option for the place where instances run: the pool, a goroutine or a process.
func place(value string) []string {
	switch value {
	case "blocking":
		return []string{"blocking: true"}
	case "process":
		return []string{"isolation: process", "memory: 512MiB"}
	}
	return nil
}

// edges returns the edges of the topology file.
func (r row) edges() []string {
	options := r.input()
	switch r["capacity"] {
	case "default":
	default:
		options = append(options, "capacity: "+r["capacity"])
	}
	if r["full"] != "block" || r["capacity"] != "default" {
		options = append(options, "full: "+r["full"])
	}
	if r["form"] == "shared" {
		options = append(options, "shared: true")
	}
	one := slices.Concat(options, r.kept("feed", "One"))
	if r["reply"] == "yes" {
		one = append(one, "reply: Rep")
		if r["feed"] == "outside" && !r.isDurable("feed", "One") {
			one = append(one, "timeout: 1m")
		}
	}
	list := []string{r.edge("feed", "work", "One", one)}
	if r["two"] != "no" {
		list = append(list, r.edge(r["two"], "work", "Two", options))
	}
	out := r.kept("work", "Out")
	if r["out"] != "block" {
		out = append(out, "full: "+r["out"], "capacity: 2")
	}
	list = append(list, r.edge("work", "sink", "Out", out))
	if r.isApplied() {
		list = append(list, "ledger -> sink: LedgerApplied")
	}
	switch again := append([]string{"message: Again"}, r.kept("work", "Again")...); {
	case r["loop"] == "yes" && r["work.place"] == "every-node":
		list = append(list, "work -> work: {"+strings.Join(append(again, "route: local"), ", ")+"}")
	case r["loop"] == "yes":
		list = append(list, "work -> work: {"+strings.Join(append(again, "key: ID"), ", ")+"}")
	}
	switch r["timer"] {
	case "tick":
		every := "5ms"
		if r.isCluster() {
			every = "1s" // a cluster runs for minutes of virtual time
		}
		list = append(list, "every "+every+" -> work")
	case "watched":
		list = append(list, "every 5ms -> work: {"+strings.Join(append(r.input(), "route: broadcast"), ", ")+"}")
	case "named":
		list = append(list, "every 5ms as beat -> work: {route: {range: {offset: 0, count: 1}}}")
	}
	return append(list, r.edgesBeside()...)
}

func (r row) input() []string {
	switch r["input"] {
	case "no":
		return nil
	case "default":
		return []string{"input_timeout: 20ms"}
	}
	return []string{"input_timeout: 20ms", "arm: " + r["input"]}
}

func (r row) edge(from, to, message string, options []string) string {
	options = append([]string{"message: " + message}, options...)
	if to == "work" {
		options = append(options, map[string]string{"key": "key: ID", "id": "route: {id: Index}", "broadcast": "route: broadcast",
			"local": "route: local", "range": "route: {range: {offset: 1, count: 2}}", "node": "route: {node: Node}"}[r["route"]])
	}
	if r.isCluster() {
		options = append(options, r.crossing(from, to)...)
	}
	return fmt.Sprintf("%s -> %s: {%s}", from, to, strings.Join(options, ", "))
}

// code returns the Go code with the types and functions that the topology file names.
func (r row) code(pkg string, index int, seed uint64) string {
	var b strings.Builder
	fmt.Fprintf(&b, `// Package %[1]s is a case of package pairtests, which generates this file.
package %[1]s

import (
	"context"
	"errors"
	"maps"

	"github.com/topogen/topogen/generated_test/pairs"
	"github.com/topogen/topogen/runtime/durable"
	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

var (
	_ durable.Context
	_ topo.Tick
	_ = errors.Join
	_ = maps.Clone[map[int]int]
)

// Case is the topology of this package.
var Case = pairs.Case{Name: %[1]q, Index: %[2]d, Seed: %[3]d, Options: map[string]string{
`, pkg, index, seed)
	for _, name := range slices.Sorted(maps.Keys(r)) {
		fmt.Fprintf(&b, "\t%q: %q,\n", name, r[name])
	}
	if r.isCluster() {
		b.WriteString("}, NewNode: construct")
	} else {
		b.WriteString("}, New: construct")
	}
	if r.hasLog() {
		b.WriteString(", Recovered: recovered")
	}
	if r.isReplicated() {
		b.WriteString(", Member: member")
	}
	if list := r.durableEdges(); len(list) > 0 {
		fmt.Fprintf(&b, ", Durable: %#v", list)
	}
	b.WriteString("}\n\n")
	r.construct(&b)
	b.WriteString("\nfunc newOut(id int) pairs.Out { return pairs.Out{ID: id} }\n")
	for _, m := range []string{"One", "Two", "Again", "Rep"} {
		r.message(&b, m)
	}
	if r["feed"] != "outside" {
		r.source(&b, "feed", r.sourceSends("feed"))
	}
	if r["two"] == "other" {
		r.source(&b, "other", r.sourceSends("other"))
	}
	r.workCode(&b)
	r.type_(&b, "Sink")
	r.handler(&b, "Sink", "work", "Out", "", "")
	if r.isApplied() {
		b.WriteString("\nfunc (p *Sink) ReceiveLedgerApplied(ctx context.Context, m LedgerApplied) error { return p.Handle(ctx, \"ledger.LedgerApplied\", m.Update.ID) }\n")
	}
	r.machineCode(&b)
	r.codeBeside(&b)
	if r["letters"] == "yes" {
		r.morgue(&b)
	}
	return b.String()
}

func (r row) construct(b *strings.Builder) {
	constructors, state := "", ""
	if r.isReplicated() {
		constructors = "Ledger: func(topo.Instance) (*Ledger, error) { return NewLedger(pairs.Join(\"n1\")) }"
	}
	if r.isCluster() {
		r.constructNode(b)
	} else {
		fmt.Fprintf(b, "func construct(opts ...pool.Option) (pairs.Topology, pairs.Outside, error) {\n\tt, err := New(Processors{%s}, opts...)\n", constructors)
	}
	if r["machine"] != "no" {
		state = "State: func() (map[int]int, error) { return marks(t) }"
	}
	outside, beside := r["feed"] == "outside", r["durable"] == "beside"
	if !outside && !beside {
		fmt.Fprintf(b, "\treturn t, pairs.Outside{%s}, err\n}\n", state)
		return
	}
	if state != "" {
		state += ", "
	}
	fmt.Fprintf(b, "\tif err != nil {\n\t\treturn nil, pairs.Outside{}, err\n\t}\n\treturn t, pairs.Outside{%sClose: func() {\n", state)
	if outside {
		b.WriteString("\t\tt.Feed().Close()\n")
	}
	if beside {
		b.WriteString("\t\tt.Client().Close()\n")
	}
	b.WriteString("\t}, Sends: []pairs.OutsideSend{\n")
	if beside {
		b.WriteString(r.outsideDurable("Client", "client", "Job"))
	}
	switch {
	case !outside:
	case r.isDurable("feed", "One"):
		b.WriteString(r.outsideDurable("Feed", "feed", "One"))
	case r["reply"] == "yes":
		b.WriteString("\t\t{Edge: \"feed.One\", Asks: true, Do: func(ctx context.Context, id int) error { _, err := t.Feed().AskOne(ctx, newOne(id)); return err }},\n")
	default:
		b.WriteString("\t\t{Edge: \"feed.One\", Do: func(ctx context.Context, id int) error { return t.Feed().SendOne(ctx, newOne(id)) }},\n")
	}
	if outside && r["two"] == "feed" {
		b.WriteString("\t\t{Edge: \"feed.Two\", Do: func(ctx context.Context, id int) error { return t.Feed().SendTwo(ctx, newTwo(id)) }},\n")
	}
	b.WriteString("\t}}, nil\n}\n")
}

func (r row) message(b *strings.Builder, name string) {
	data, value := "", ""
	if r.hasData(name) {
		data, value = "; Data []int", ", Data: pairs.Data(id)"
	}
	if r["route"] == "node" && name != "Rep" && name != "Again" {
		data, value = data+"; Node string", value+", Node: pairs.NodeOf(id, "+r["nodes"]+")"
	}
	fmt.Fprintf(b, "\ntype %[1]s struct{ ID, Index int%[2]s }\n\nfunc new%[1]s(id int) %[1]s { return %[1]s{ID: id, Index: id / 2 %% %[3]s%[4]s} }\n", name, data, r["work.instances"], value)
	if name == "Rep" && r.isCluster() {
		b.WriteString("\nfunc (m Rep) Aggregate(Rep) Rep { return m }\n")
	}
	if r.hasData(name) && r["form"] == "clone" {
		fmt.Fprintf(b, "\nfunc (m %s) Clone() %[1]s { m.Data = append([]int(nil), m.Data...); return m }\n", name)
	}
}

// hasData reports whether the type of the message has a slice.
func (r row) hasData(message string) bool {
	return (r["form"] == "clone" || r["form"] == "shared") && (message == "One" || message == "Two")
}

func (row) type_(b *strings.Builder, name string) {
	config := ""
	if name == "Sink" {
		config = ", _ pairs.Config"
	}
	fmt.Fprintf(b, `
type %[1]s struct{ pairs.Instance }

func New%[1]s(in topo.Instance%[2]s) (*%[1]s, error) {
	i, err := pairs.New(in)
	return &%[1]s{i}, err
}

func (p *%[1]s) Init(ctx context.Context) error   { return p.Started(ctx) }
func (p *%[1]s) Finish(ctx context.Context) error { return p.Finished(ctx) }
func (p *%[1]s) Close() error                     { return p.Closed() }
`, name, config)
}

// machineCode writes the types of the state machine, and a function that recovers the state from the
// log.
func (r row) machineCode(b *strings.Builder) {
	if r["machine"] == "no" {
		return
	}
	b.WriteString(`
type (
	Marks struct{ Seen map[int]int }
	Mark  struct{ ID int }
	Count int
)

func (m *Mark) Update(s *Marks) (Count, error) {
	err := pairs.Apply(&s.Seen, m.ID)
	return Count(s.Seen[m.ID]), err
}

// marks returns the state in this process.
func marks(t *Topology) (map[int]int, error) {
	seen := make(map[int]int)
	read := func(s *Marks) { maps.Copy(seen, s.Seen) }
`)
	if r["machine"] == "several" {
		b.WriteString("\treturn seen, errors.Join(t.Ledger().At(0).Read(context.Background(), read), t.Ledger().At(1).Read(context.Background(), read))\n}\n")
	} else {
		b.WriteString("\treturn seen, t.Ledger().Read(context.Background(), read)\n}\n")
	}
	if r["revert"] == "yes" {
		b.WriteString("\nfunc (m *Mark) Revert(s *Marks) error { return pairs.Revert(s.Seen, m.ID) }\n")
	}
	if !r.hasLog() {
		return
	}
	if r.isReplicated() {
		b.WriteString(`
func recovered() (map[int]int, error) { return pairs.RecoverGroup(member) }

func member(node string) (pairs.Member, func(context.Context) (map[int]int, error), error) {
	m, err := NewLedger(pairs.Join(node))
	return m, func(ctx context.Context) (seen map[int]int, err error) {
		err = m.Read(ctx, func(s *Marks) { seen = maps.Clone(s.Seen) })
		return seen, err
	}, err
}
`)
		return
	}
	b.WriteString(`
func recovered() (seen map[int]int, err error) {
	m, err := NewLedger()
	if err != nil {
		return nil, err
	}
	if err := m.Start(context.Background(), nil); err != nil {
		return nil, err
	}
	err = m.Read(context.Background(), func(s *Marks) { seen = maps.Clone(s.Seen) })
	return seen, errors.Join(err, m.Close())
}
`)
}

// send returns the code of a pairs.Send. returns says whether the send method has an error result:
// the methods of sources and of edges with full: fail have one.
func (r row) send(from, message string, returns bool) string {
	if r.isDurable(from, message) {
		return r.sendDurable(from, message)
	}
	call := fmt.Sprintf("out.Send%s(new%[1]s(id)); return nil", message)
	if returns {
		call = fmt.Sprintf("return out.Send%s(new%[1]s(id))", message)
	}
	return fmt.Sprintf("pairs.Send{Edge: \"%s.%s\", Do: func(id int) error { %s }}", from, message, call)
}

func (r row) sourceSends(from string) string {
	returns := from == "other" || r["reply"] == "no" || r["full"] == "fail"
	var list []string
	if from == "feed" {
		list = append(list, r.send("feed", "One", returns))
	}
	if r["two"] == from {
		list = append(list, r.send(from, "Two", returns))
	}
	return strings.Join(list, ", ")
}

func (r row) source(b *strings.Builder, name, sends string) {
	typ := strings.ToUpper(name[:1]) + name[1:]
	r.type_(b, typ)
	method, does := "Ping", "SendNext"
	if name == "feed" && r["feed"] == "serve" {
		method, does = "Serve", "SendAll"
	}
	fmt.Fprintf(b, "\nfunc (p *%[1]s) %[2]s(ctx context.Context, out *%[1]sSender) error { return p.%[3]s(ctx, %[4]s) }\n", typ, method, does, sends)
	if name == "feed" && r["reply"] == "yes" && !r.isDurable("feed", "One") {
		r.handler(b, "Feed", "work", "Rep", "", "")
	}
}

func (r row) workCode(b *strings.Builder) {
	r.type_(b, "Work")
	sends := r.send("work", "Out", r["out"] == "fail")
	loop := sends
	if r["loop"] == "yes" {
		loop += ", " + r.send("work", "Again", false)
	}
	if r["machine"] != "no" {
		loop += ", " + r.update()
		b.WriteString("\nfunc (p *Work) ReceiveLedgerOutcome(ctx context.Context, m LedgerOutcome) error {\n\treturn p.Outcome(ctx, m.Update.ID, m.Err)\n}\n")
	}
	if r["machine"] != "no" && r["revert"] == "yes" {
		b.WriteString(`
func (p *Work) ReceiveLedgerUpcoming(m LedgerUpcoming) error {
	var ids []int
	for _, u := range m.Updates {
		ids = append(ids, u.ID)
	}
	return p.Uncommitted(ids...)
}
`)
	}
	reply := ""
	if r["reply"] == "yes" {
		reply = "Rep"
	}
	r.handler(b, "Work", "feed", "One", loop, reply)
	if r["two"] != "no" {
		r.handler(b, "Work", r["two"], "Two", sends, "")
	}
	if r["loop"] == "yes" {
		r.handler(b, "Work", "work", "Again", sends, "")
	}
	switch r["timer"] {
	case "tick", "watched":
		fmt.Fprintf(b, "\nfunc (p *Work) ReceiveTick(ctx context.Context, t topo.Tick) error { return p.Handle(ctx, \"timer.Tick\", int(t.N)) }\n")
	case "named":
		fmt.Fprintf(b, "\nfunc (p *Work) ReceiveTickBeat(ctx context.Context, t topo.Tick) error { return p.Handle(ctx, \"timer.TickBeat\", int(t.N)) }\n")
	}
}

// update returns the code of the pairs.Send to the state machine.
func (r row) update() string {
	if r["revert"] == "no" {
		return "pairs.Send{Edge: \"work.LedgerProposal\", Do: func(id int) error { out.ProposeToLedger(Mark{id}); return nil }}"
	}
	return `p.Control(pairs.Controller{
		Propose:  func(id int) { out.ProposeToLedger(Mark{id}) },
		Add:      func(id int) { out.SendLedgerUpdates(LedgerUpdates{Updates: []Mark{{id}}}) },
		Commit:   func() { out.SendLedgerCommit(LedgerCommit{}) },
		Revert:   func() { out.SendLedgerRevert(LedgerRevert{}) },
		Upcoming: func() { out.SendLedgerGetUpcoming(LedgerGetUpcoming{}) },
	})`
}

func (r row) handler(b *strings.Builder, typ, from, message, sends, reply string) {
	m, out := message, ""
	if message == "Out" {
		m = "pairs.Out"
	}
	if r["form"] == "pointer" || r["form"] == "clone" {
		m = "*" + m
	}
	if sends != "" {
		out, sends = ", out *"+typ+"Sender", ", "+sends
	}
	change := ""
	if r["form"] == "clone" && r.hasData(message) {
		change = fmt.Sprintf("p.Change(%q, m.ID, m.Data); ", from+"."+message)
	}
	parameter, handle := "context.Context", "Handle"
	if r.isDurable(from, message) {
		parameter, handle = "durable.Context", "HandleDurable"
	}
	call := fmt.Sprintf("p.%s(ctx, %q, m.ID%s)", handle, from+"."+message, sends)
	result, body := "error", change+"return "+call
	if reply != "" {
		result, body = "("+reply+", error)", change+"return new"+reply+"(pairs.SourceID(m.ID, p.Index())), "+call
	}
	fmt.Fprintf(b, "\nfunc (p *%s) Receive%s(ctx %s, m %s%s) %s { %s }\n", typ, message, parameter, m, out, result, body)
}

func (r row) morgue(b *strings.Builder) {
	r.type_(b, "Morgue")
	b.WriteString("\nfunc (p *Morgue) ReceiveDeadLetter(d topo.DeadLetter) {\n")
	if r["work.place"] == "every-node" {
		b.WriteString("\td.Instance += p.Index() // both are on the same node\n")
	}
	letter := func(from, message string) {
		fmt.Fprintf(b, "\tif m, ok := DeadLetter%sWork%s(d); ok {\n\t\tpairs.Letter(%q, d, m.ID)\n\t}\n", strings.ToUpper(from[:1])+from[1:], message, from+"."+message)
	}
	letter("feed", "One")
	if r["two"] != "no" {
		letter(r["two"], "Two")
	}
	if r["loop"] == "yes" {
		letter("work", "Again")
	}
	if r["machine"] != "no" {
		b.WriteString("\tif m, ok := DeadLetterLedgerWorkLedgerOutcome(d); ok {\n\t\tpairs.Letter(\"ledger.LedgerOutcome\", d, m.Update.ID)\n\t}\n")
	}
	b.WriteString("}\n")
}
