package gen_test

import (
	"bytes"
	"errors"
	"fmt"
	"go/format"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/topogen/topogen/gen"
	"github.com/topogen/topogen/gen/cache"
	"github.com/topogen/topogen/gen/write"
	"github.com/topogen/topogen/internal/test/rerun"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/spec"
	"github.com/topogen/topogen/spec/finding"
)

// TestRandomTopologies generates topologies of every combination of options,
// with handlers of every shape. Every accepted topology must give complete, formatted files,
// which Generate type-checks. A landing run also compiles some of them.
func TestRandomTopologies(t *testing.T) {
	first, end := speed.Seeds(t, 6, 80, 1000)
	rounds := int(end - first)
	dir, err := os.MkdirTemp("testdata", "random") // inside this module, which has the runtime
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if dir, err = filepath.Abs(dir); err != nil {
		t.Fatal(err)
	}
	known := cache.Open(t.TempDir()) // the go command is asked once for the same packages
	compiledMax := speed.Pick(t, 0, 10, 10)
	accepted, durable := 0, 0
	var packages []string // for the compiler
	for seed := first; seed < end; seed++ {
		r := &randomTopology{Rand: rand.New(rand.NewPCG(seed, 1)), failures: seed%2 == 1, machines: seed%3 == 0, cluster: seed%5 > 2, durable: seed%5 == 1 || seed%5 == 2}
		source := r.file()
		path := filepath.Join(dir, "topology.yml")
		_, findings := spec.Parse(path, []byte(source))
		if finding.HasErrors(findings) {
			continue
		}
		accepted++
		code := r.code()
		if err := os.WriteFile(filepath.Join(dir, "code.go"), []byte(code), 0o644); err != nil {
			t.Fatal(err)
		}
		result, findings := gen.Generate(t.Context(), gen.Input{Path: path, Source: []byte(source)}, gen.Options{Cache: known})
		if r.cluster && unfinished(findings) { // delete with unfinished.go
			continue
		}
		if finding.HasErrors(findings) || len(result.Files) < 2 {
			var text strings.Builder
			if err := finding.WriteText(&text, findings, nil, false); err != nil {
				t.Fatal(err)
			}
			t.Fatalf("seed %d: %d files\n%s\n%s\n%s\n%s", seed, len(result.Files), text.String(), source, code, speed.Repeat(t, seed))
		}
		for _, f := range result.Files {
			if f.Kept {
				continue
			}
			if formatted, err := format.Source(f.Body); err != nil || !bytes.Equal(formatted, f.Body) {
				t.Fatalf("seed %d: %s is not as gofmt would have it: %v\n%s\n%s\n%s", seed, f.Name, err, source, f.Body, speed.Repeat(t, seed))
			}
		}
		compiled := slices.ContainsFunc(r.processors, func(p randomProcessor) bool { return p.isolated || p.machines > 0 })
		if slices.ContainsFunc(r.edges, func(e randomEdge) bool { return e.durable }) {
			durable++
			compiled = compiled || durable%8 == 1
		}
		if compiled && len(packages) < compiledMax {
			packages = append(packages, keep(t, fmt.Sprintf("%s/seed%d", dir, seed), code, result.Files))
		}
	}
	t.Logf("%d of %d were accepted, %d with durable edges", accepted, rounds, durable)
	if accepted < rounds/4 || durable < rounds/20 {
		t.Errorf("only %d of %d topologies were accepted, %d with durable edges", accepted, rounds, durable)
	}
	if len(packages) == 0 {
		return
	}
	rerun.WhenCodeChanges(t)
	if out, err := exec.Command("go", append([]string{"build"}, packages...)...).CombinedOutput(); err != nil {
		t.Errorf("go build: %v\n%s\neach folder has the name of its seed, the first is\n%s", err, out, speed.Repeat(t, first))
	}
}

// unfinished reports whether a cluster is the only reason why there is no code. Delete it with
// unfinished.go.
func unfinished(findings []finding.Finding) bool {
	findings = slices.DeleteFunc(slices.Clone(findings), func(f finding.Finding) bool { return f.Severity == finding.Warning })
	return len(findings) > 0 && !slices.ContainsFunc(findings, func(f finding.Finding) bool { return !strings.HasPrefix(f.Message, "topogen cannot generate") })
}

// keep writes a package and returns its folder.
func keep(t *testing.T, dir, code string, files []write.File) string {
	t.Helper()
	for _, f := range append(files, write.File{Name: "code.go", Body: []byte(code)}) {
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, f.Name), f.Body, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// randomTopology is a random topology with the Go that it names.
type randomTopology struct {
	*rand.Rand
	failures   bool // the file says what becomes of them
	machines   bool // there are some
	cluster    bool // it has a cluster
	durable    bool // it has durable edges
	processors []randomProcessor
	edges      []randomEdge
	told       map[string]int // what machines tell, and which processor
}

type randomProcessor struct {
	external, watched, isolated bool
	everyNode, blocking         bool
	instances                   int
	letters                     int // the receiver of its dead letters; -1: none
	machines                    int // that it controls
}

type randomEdge struct {
	from, to int // from is -1 for a timer
	message  int
	reply    int  // -1: none
	silent   bool // it has a timeout
	durable  bool
	timer    string // its name; "" for none
}

const randomMessages = 5

func (r *randomTopology) chance(percent int) bool { return r.IntN(100) < percent }

func (r *randomTopology) one(list ...string) string { return list[r.IntN(len(list))] }

// file writes a topology that is mostly right.
func (r *randomTopology) file() string {
	var b strings.Builder
	b.WriteString("version: 1\nname: random\n")
	if r.cluster {
		b.WriteString("cluster: {nodes: " + r.one(`{n1: "127.0.0.1:7400"}`, `{n2: "127.0.0.1:7401", n1: "127.0.0.1:7400", n3: "127.0.0.1:7402"}`) + r.one("", ", dir: ./node", ", fence: off", ", rebalance: none", ", membership: {helpers: 0}") + "}\n")
	}
	r.section(&b)
	b.WriteString("processors:\n")
	number := 2 + r.IntN(5)
	for i := range number {
		p := randomProcessor{instances: 1, letters: -1}
		var options []string
		switch {
		case i > 0 && r.chance(20):
			p.external, options = true, []string{"external: true"}
		case r.chance(50):
			p.instances = 2 + r.IntN(3)
			options = append(options, fmt.Sprintf("instances: %d", p.instances))
		}
		if p.blocking = !p.external && r.chance(map[bool]int{false: 15, true: 80}[r.durable]); p.blocking {
			options = append(options, "blocking: true")
		}
		if r.failures && !p.external {
			failures := r.watch(i, &p)
			p.watched = failures != nil
			options = append(options, failures...)
			if p.isolated = r.chance(35); p.isolated {
				p.watched = true
				options = append(options, "isolation: process")
			}
		}
		if r.cluster && !p.external && r.chance(60) {
			p.everyNode = r.chance(50)
			options = append(options, map[bool]string{true: "placement: every-node", false: r.one("placement: spread", "placement: {node: n1}")}[p.everyNode])
		}
		r.processors = append(r.processors, p)
		fmt.Fprintf(&b, "  p%d: {%s}\n", i, strings.Join(options, ", "))
	}
	if r.machines {
		r.machine(&b)
	}
	b.WriteString("edges:\n")
	for range 1 + r.IntN(8) {
		r.edge(&b)
	}
	r.events(&b)
	if r.failures && r.chance(30) {
		r.processors[0].watched = true
		fmt.Fprintf(&b, "groups:\n  all: {processors: [p0], strategy: %s, intensity: 3, period: 10s}\n", r.one("one-for-one", "one-for-all", "one-for-all, shutdown: 20ms", "rest-for-one"))
	}
	return b.String()
}

// machineKeys choose the instance of a Change.
var machineKeys = []string{"key: M.Name", "key: M.Sum", "key: M.Sub.ID", "key: M.Raw", "key: M.On", "route: {id: M.ID}", "key: Odd"}

// machine writes state machines. Their names begin with their controller: the first state
// machine of processor 2 is p2m0.
func (r *randomTopology) machine(b *strings.Builder) {
	r.told = map[string]int{}
	for range 1 + r.IntN(2) {
		i := r.IntN(len(r.processors))
		p := &r.processors[i]
		if p.external || p.isolated {
			continue
		}
		options := ""
		if r.chance(15) {
			options = fmt.Sprintf(", log: {path: p%dm%d, sync: %s}", i, p.machines, r.one("always", "none", "interval"))
		} else if r.chance(15) {
			options = fmt.Sprintf(", log: {path: p%dm%d}, raft: {peers: {n1: \"127.0.0.1:1\"}}", i, p.machines)
		}
		if r.chance(40) {
			options += ", instances: " + r.one("2", "5", "16") + ", " + r.one(append(machineKeys, "route: local")...)
		}
		fmt.Fprintf(b, "  p%dm%d: {kind: fsm, state: State, update: Change, controller: p%[1]d%[3]s}\n", i, p.machines, options)
		r.told[fmt.Sprintf("P%dm%d", i, p.machines)] = -1
		p.machines++
	}
	if r.chance(30) {
		r.told["Alone"] = -1
		b.WriteString("  alone: {kind: fsm, state: State, update: Change" + r.one("", ", instances: 3", ", instances: 3, "+r.one(machineKeys...)) + "}\n")
	}
}

// events writes edges from machines, to one processor each.
func (r *randomTopology) events(b *strings.Builder) {
	for _, machine := range slices.Sorted(maps.Keys(r.told)) {
		to := r.IntN(len(r.processors))
		if p := r.processors[to]; p.external || p.isolated || r.chance(50) {
			continue
		}
		r.told[machine] = to
		for _, event := range []string{"Applied", "Leadership"} {
			full := []string{"block", "drop-oldest", "drop-newest"}
			if event == "Applied" {
				full = append(full, "fail")
			}
			fmt.Fprintf(b, "  - %s -> p%d: {message: %s%s, full: %s, shared: true, route: %s}\n", strings.ToLower(machine), to, machine, event, r.one(full...), r.one("{id: Instance}", "local", "broadcast"))
		}
	}
}

// watch returns random settings for failures of processor i.
func (r *randomTopology) watch(i int, p *randomProcessor) (options []string) {
	if r.chance(40) {
		options = append(options, "restart: "+r.one("on-failure", "always", "never", "{policy: on-failure, max_restarts: 3, delay: 1s, max_delay: 5s, window: 1h, jitter: 0.5}"))
	}
	if r.chance(30) {
		options = append(options, "health: "+r.one("{timeout: 1s}", "{timeout: 2s, startup_timeout: 3s}"))
	}
	switch {
	case i > 0 && r.chance(30) && !r.processors[0].external && !r.processors[0].isolated && r.processors[0].instances == 1:
		p.letters = 0
		options = append(options, fmt.Sprintf("on_error: {then: %s, max_attempts: %s, dead_letter: p0}", r.one("stop", "retry"), r.one("1", "3")))
	case r.chance(40):
		options = append(options, "on_error: "+r.one("stop", "skip", "retry", "{then: stop, max_attempts: 2}", "{then: retry, delay: 10ms, max_delay: 1s, jitter: 0.5}"))
	}
	return options
}

func (r *randomTopology) edge(b *strings.Builder) {
	e := randomEdge{from: r.IntN(len(r.processors)), to: r.IntN(len(r.processors)), message: r.IntN(randomMessages), reply: -1}
	to := r.processors[e.to]
	if to.external || slices.ContainsFunc(r.edges, func(f randomEdge) bool { return f.from == e.from && f.to == e.to && f.message == e.message }) || r.isTaken(e) {
		return
	}
	if r.chance(10) {
		e.from = -1
		options := r.silence()
		e.silent = options != nil
		name := ""
		if r.chance(50) {
			e.timer = fmt.Sprintf("t%d", len(r.edges))
			name = " as " + e.timer
		}
		r.edges = append(r.edges, e)
		fmt.Fprintf(b, "  - every %ds%s -> p%d: {%s}\n", len(r.edges), name, e.to, strings.Join(options, ", "))
		return
	}
	if r.keeps(e) {
		r.durableEdge(b, e)
		return
	}
	options := []string{fmt.Sprintf("message: M%d", e.message)}
	if to.everyNode {
		routes := []string{"route: broadcast", "route: local", "route: {node: Name}"}
		if r.processors[e.from].external && to.instances > 1 {
			routes = routes[:1]
		}
		options = append(options, r.one(routes...))
	} else if to.instances > 1 {
		options = append(options, r.one("key: ID", "key: Name", "key: Sub.ID", "key: Sum", "route: broadcast", "route: {id: ID}",
			"route: {range: {offset: 1, count: 1}}", "route: {range: {offset: 0, count: 2}}", "route: local"))
	} else if r.chance(20) {
		options = append(options, r.one("route: {id: ID}", "route: broadcast", "key: Raw", "key: On"))
	}
	if r.chance(50) {
		full := []string{"block", "drop-oldest", "drop-newest", "fail"}
		if r.processors[e.from].isolated {
			full = full[:3]
		}
		options = append(options, "full: "+r.one(full...))
	}
	if r.chance(25) {
		e.reply = r.IntN(randomMessages)
		options = append(options, fmt.Sprintf("reply: M%d", e.reply))
		if r.processors[e.from].external && r.chance(50) {
			options = append(options, "timeout: 2s")
		}
	}
	silence := r.silence()
	e.silent = silence != nil
	options = append(options, silence...)
	r.edges = append(r.edges, e)
	fmt.Fprintf(b, "  - p%d -> p%d: {%s}\n", e.from, e.to, strings.Join(options, ", "))
}

// silence returns a random input timeout.
func (r *randomTopology) silence() (options []string) {
	if r.failures && r.chance(40) {
		options = append(options, "input_timeout: 1m")
		if r.chance(50) {
			options = append(options, "arm: start")
		}
	}
	return options
}

// code writes types with handlers of random shapes.
func (r *randomTopology) code() string {
	var b strings.Builder
	b.WriteString("package random\n\nimport (\n\t\"context\"\n\n\t\"github.com/topogen/topogen/runtime/durable\"\n\t\"github.com/topogen/topogen/runtime/topo\"\n)\n\nvar _ = topo.Done\n\ntype _ = durable.Context\n\ntype Sub struct{ ID int }\n")
	for i := range randomMessages {
		fmt.Fprintf(&b, "\ntype M%d struct {\n\tID   int\n\tName string\n\tRaw  []byte\n\tOn   bool\n\tSub  *Sub\n}\n\nfunc (m M%[1]d) Clone() M%[1]d { return m }\nfunc (m M%[1]d) Aggregate(M%[1]d) M%[1]d { return m }\nfunc (m *M%[1]d) Sum() uint8  { return 0 }\n", i)
	}
	if r.machines {
		b.WriteString("\ntype State struct{ All map[string]M0 }\n\ntype Change struct{ M *M1 }\n\n" +
			"func (Change) Odd() bool { return false }\nfunc (Change) Update(*State) error { return nil }\nfunc (*Change) Revert(*State) error { return nil }\n")
	}
	for i, p := range r.processors {
		if !p.external {
			r.processor(&b, i)
		}
	}
	b.WriteString("\nvar _ context.Context\n")
	return b.String()
}

func (r *randomTopology) processor(b *strings.Builder, i int) {
	fmt.Fprintf(b, "\ntype P%d struct{}\n\n", i)
	sends, receives, ticks := r.processors[i].machines > 0, r.processors[i].machines > 0, false
	for _, p := range r.processors {
		receives = receives || p.letters == i
	}
	for _, e := range r.edges {
		sends = sends || e.from == i
		receives = receives || e.to == i || e.from == i && e.reply >= 0 && !e.durable
		ticks = ticks || e.from < 0 && e.to == i && e.timer == ""
	}
	for _, to := range r.told {
		receives = receives || to == i
	}
	out := ""
	if sends {
		out = fmt.Sprintf("out *P%dSender", i)
	}
	done := make(map[string]bool)
	handler := func(name, message, reply string) {
		if done[name] {
			return
		}
		done[name] = true
		var params, results []string
		if r.chance(30) {
			params = append(params, "ctx context.Context")
		}
		if message != "topo.Tick" && r.chance(50) {
			message = "*" + message
		}
		params = append(params, "m "+message)
		if out != "" && r.chance(60) {
			params = append(params, out)
		}
		if reply != "" {
			results = append(results, "r "+reply)
		}
		if r.chance(50) {
			results = append(results, "err error")
		}
		fmt.Fprintf(b, "func (%s) %s(%s) (%s) { return }\n", r.one("*", "")+fmt.Sprintf("P%d", i), name, strings.Join(params, ", "), strings.Join(results, ", "))
	}
	for _, e := range r.edges {
		message, reply := fmt.Sprintf("M%d", e.message), ""
		if e.reply >= 0 {
			reply = fmt.Sprintf("M%d", e.reply)
		}
		if e.to == i && e.timer != "" {
			handler("ReceiveTick"+spec.Exported(e.timer), "topo.Tick", "")
		}
		switch {
		case e.to == i && e.durable:
			r.durableHandler(b, e, out)
		case e.to == i && e.from >= 0:
			handler(fmt.Sprintf("Receive%sFromP%d", message, e.from), message, reply)
		}
		if e.from == i && reply != "" && !e.durable {
			handler(fmt.Sprintf("Receive%sFromP%d", reply, e.to), reply, "")
		}
	}
	if ticks {
		handler("ReceiveTick", "topo.Tick", "")
	}
	for _, p := range r.processors {
		if p.letters == i {
			handler("ReceiveDeadLetter", "topo.DeadLetter", "")
		}
	}
	for n := range r.processors[i].machines {
		if r.chance(60) { // else they are forgotten
			message := fmt.Sprintf("P%dm%dOutcome", i, n)
			handler("Receive"+message, message, "")
		}
	}
	for _, machine := range slices.Sorted(maps.Keys(r.told)) {
		if r.told[machine] == i {
			handler("Receive"+machine+"Applied", machine+"Applied", "")
			handler("Receive"+machine+"LeadershipFrom"+machine, machine+"Leadership", "")
		}
	}
	if r.hears(i) {
		r.hearing(b, i, out)
	}
	switch {
	case !receives && out != "" && r.chance(50):
		fmt.Fprintf(b, "func (*P%d) Serve(ctx context.Context, %s) error { return nil }\n", i, out)
	case r.chance(40) || !receives:
		fmt.Fprintf(b, "func (*P%d) Ping(%s) error { return topo.Done }\n", i, out)
	}
	if r.chance(20) {
		fmt.Fprintf(b, "func (P%d) Finish(%s) {}\nfunc (P%[1]d) Init(context.Context) error { return nil }\nfunc (P%[1]d) Close() error { return nil }\n", i, out)
	}
}

// hears reports whether processor i can observe its inputs.
func (r *randomTopology) hears(i int) bool {
	return slices.ContainsFunc(r.processors, func(p randomProcessor) bool { return p.letters == i }) ||
		slices.ContainsFunc(r.edges, func(e randomEdge) bool {
			return !e.durable && e.to == i && (e.silent || e.from >= 0 && r.processors[e.from].watched) ||
				e.from == i && e.reply >= 0 && !e.durable && r.processors[e.to].watched
		})
}

// hearing writes some or all of the methods for that.
func (r *randomTopology) hearing(b *strings.Builder, i int, out string) {
	for _, m := range []struct{ name, param string }{
		{"InputClosed", fmt.Sprintf("in P%dInput", i)}, {"InputRecovered", fmt.Sprintf("in P%dInput", i)},
		{"ProcessorRestarted", "p ProcessorIndex"}, {"AllInputsClosed", ""},
	} {
		if r.chance(30) {
			continue
		}
		var params []string
		if r.chance(30) {
			params = append(params, "ctx context.Context")
		}
		if m.param != "" {
			params = append(params, m.param)
		}
		if out != "" && r.chance(50) {
			params = append(params, out)
		}
		fmt.Fprintf(b, "func (%sP%d) %s(%s) %s\n", r.one("*", ""), i, m.name, strings.Join(params, ", "), r.one("{}", "error { return nil }"))
	}
	if r.chance(50) {
		fmt.Fprintf(b, "func (*P%d) Inputs(in *P%[1]dInputs) { _ = in.AnyClosed() }\n", i)
	}
}
