package spec

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/topogen/topogen/spec/finding"
)

// parseClean parses a file that must have no errors.
func parseClean(t *testing.T, src string) *Topology {
	t.Helper()
	topology, findings := Parse("topology.yml", []byte(src))
	if finding.HasErrors(findings) {
		var out bytes.Buffer
		_ = finding.WriteText(&out, findings, map[string][]byte{"topology.yml": []byte(src)}, false)
		t.Fatal(out.String())
	}
	return topology
}

// values ignores positions in a comparison. TestPlaces checks them.
var values = cmp.Options{
	cmpopts.IgnoreTypes(finding.Range{}),
	cmpopts.IgnoreFields(Text{}, "Pointer"),
	cmpopts.IgnoreFields(Route{}, "Pointer"),
	cmpopts.IgnoreFields(Value{}, "Pointer"),
	cmpopts.IgnoreFields(Edge{}, "FromText", "ToText", "Pointer"),
	cmpopts.IgnoreFields(Processor{}, "Pointer"),
	cmpopts.IgnoreFields(Restart{}, "Pointer"),
	cmpopts.IgnoreFields(Health{}, "Pointer"),
	cmpopts.IgnoreFields(OnError{}, "Pointer"),
	cmpopts.IgnoreFields(Group{}, "Pointer"),
	cmpopts.IgnoreFields(Topology{}, "Source"),
}

func text(value string) Text { return Text{Value: value} }

// unsupervised fills in the defaults of processors without keys about failures.
func unsupervised(processors ...Processor) []Processor {
	for i := range processors {
		p := &processors[i]
		p.Restart.Policy, p.Isolation, p.OnError = Never, Goroutine, OnError{Then: Stop, DeadLetterTo: -1}
	}
	return processors
}

func TestModelOfTheContractsExample(t *testing.T) {
	got := parseClean(t, string(read(t, "testdata/parse/clean-contract/input.yml")))
	key := Route{Kind: RouteKey, Field: text("Account")}
	want := &Topology{
		File: "topology.yml", Name: text("orders"), Package: text("orders"), Output: text("topology_gen.go"),
		Messages: []Message{
			{text("Order"), text("example.com/shop/model.Order")},
			{text("Lines"), text("*example.com/shop/model.Page[string]")},
		},
		Processors: unsupervised(
			Processor{Name: text("feed"), Ident: "Feed", New: text("NewFeed"), Instances: 1, With: &Value{Kind: Map, Fields: []Field{
				{text("dir"), &Value{Kind: String, Text: "./in"}},
				{text("glob"), &Value{Kind: String, Text: "*.csv"}},
			}}},
			Processor{Name: text("parser"), Ident: "Parser", Instances: 1},
			Processor{Name: text("pricing"), Ident: "Pricing", Type: text("example.com/shop/pricing.Engine"), Instances: 8},
			Processor{Name: text("store"), Ident: "Store", Instances: 4, Blocking: true},
			Processor{Name: text("audit"), Ident: "Audit", Instances: 1},
			Processor{Name: text("api"), Ident: "Api", Instances: 1, External: true},
		),
		Edges: []Edge{
			{From: 0, To: 1, Message: text("Raw"), Capacity: 1024, Full: Block},
			{From: 1, To: 2, Message: text("Order"), Route: key, Capacity: 1024, Full: Block},
			{From: 1, To: 4, Message: text("Rejected"), Capacity: 1024, Full: Block},
			{From: 2, To: 4, Message: text("Priced"), Capacity: 4096, Full: Block},
			{From: 2, To: 3, Message: text("Priced"), Route: key, Capacity: 1024, Full: Block},
			{From: 5, To: 2, Message: text("Quote"), Route: key, Reply: text("Price"), Timeout: 2 * time.Second, Capacity: 1024, Full: Block},
			{From: -1, To: 4, Every: time.Second, Capacity: 1024, Full: Block},
		},
		Pool:                Pool{Batch: 256, Rebalance: 5 * time.Second, DrainTimeout: 10 * time.Second},
		HealthCheckInterval: 5 * time.Second,
	}
	if diff := cmp.Diff(want, got, values); diff != "" {
		t.Error(diff)
	}
}

func TestModelOfEveryOption(t *testing.T) {
	got := parseClean(t, `
version: 1
name: every
processors:
  line-parser: {type: Engine, new: NewEngine, with: {n: -5, f: 1.5, b: true, l: [~, x]}, instances: 0x10, blocking: true}
  api: {external: true}
edges:
  - line-parser -> line-parser: {message: A, route: {range: {offset: 2, count: 3}}, full: drop-oldest, capacity: 16, shared: true}
  - line-parser -> line-parser: {message: B, route: {id: Header.Number}, full: drop-newest}
  - line-parser -> line-parser: {message: C, route: local, full: fail}
  - line-parser -> line-parser: {message: D, route: broadcast, full: drop-newest}
  - every 1m30s -> line-parser: {route: {range: {offset: 0, count: 1}}}
  - every   1m30s  as   health-check->line-parser
pool: {workers: 3, batch: 64, rebalance: 0, drain_timeout: 1m, message_limit: 256MiB, cycle_limit: 1000000}
`)
	want := &Topology{
		File: "topology.yml", Name: text("every"), Output: text("topology_gen.go"),
		Processors: unsupervised(
			Processor{Name: text("line-parser"), Ident: "LineParser", Type: text("Engine"), New: text("NewEngine"), Instances: 16, Blocking: true,
				With: &Value{Kind: Map, Fields: []Field{
					{text("n"), &Value{Kind: Int, Text: "-5"}},
					{text("f"), &Value{Kind: Float, Text: "1.5"}},
					{text("b"), &Value{Kind: Bool, Text: "true"}},
					{text("l"), &Value{Kind: List, Items: []*Value{{Kind: Null, Text: "~"}, {Kind: String, Text: "x"}}}},
				}}},
			Processor{Name: text("api"), Ident: "Api", Instances: 1, External: true},
		),
		Edges: []Edge{
			{Message: text("A"), Route: Route{Kind: RouteRange, Offset: 2, Count: 3}, Capacity: 16, Full: DropOldest, Shared: true},
			{Message: text("B"), Route: Route{Kind: RouteID, Field: text("Header.Number")}, Capacity: 1024, Full: DropNewest},
			{Message: text("C"), Route: Route{Kind: RouteLocal}, Capacity: 1024, Full: Fail},
			{Message: text("D"), Route: Route{Kind: RouteBroadcast}, Capacity: 1024, Full: DropNewest},
			{From: -1, Every: 90 * time.Second, Route: Route{Kind: RouteRange, Count: 1}, Capacity: 1024, Full: Block},
			{From: -1, Every: 90 * time.Second, Timer: text("health-check"), Capacity: 1024, Full: Block},
		},
		Pool:                Pool{Workers: 3, Batch: 64, DrainTimeout: time.Minute, MessageLimit: 256 << 20, CycleLimit: 1_000_000},
		HealthCheckInterval: 5 * time.Second,
	}
	if diff := cmp.Diff(want, got, values); diff != "" {
		t.Error(diff)
	}
}

func TestModelOfFailures(t *testing.T) {
	got := parseClean(t, `
version: 1
name: robot
health_check_interval: 2s
groups:
  sensors: {processors: [lidar, camera], strategy: rest-for-one, intensity: 3, period: 1m, shutdown: 2s}
  others: {processors: [planner]}
processors:
  camera: {restart: always, health: {timeout: 30s, startup_timeout: 10s}, isolation: process, memory: 512MiB}
  lidar: {on_error: skip}
  planner:
    restart: {max_restarts: 3, delay: 500ms, max_delay: 30s, window: 1m, jitter: 0.2}
    on_error: {then: retry, max_attempts: 3, delay: 20ms, max_delay: 2s, jitter: 0.5, dead_letter: morgue}
  morgue: {restart: {policy: on-failure, delay: 1s, jitter: 1}}
edges:
  - camera -> planner: {message: Frame, input_timeout: 5s}
  - lidar -> planner: {message: Points, input_timeout: 1s, arm: start}
  - every 100ms -> camera: {input_timeout: 1s, arm: first-message}
`)
	second, minute := time.Second, time.Minute
	none := OnError{Then: Stop, DeadLetterTo: -1}
	want := &Topology{
		File: "topology.yml", Name: text("robot"), Output: text("topology_gen.go"),
		HealthCheckInterval: 2 * second,
		Groups: []Group{
			{Name: text("sensors"), Processors: []int{1, 0}, Strategy: RestForOne, Intensity: 3, Period: minute, Shutdown: 2 * second, ShutdownGiven: true},
			{Name: text("others"), Processors: []int{2}, Strategy: OneForOne, Intensity: 1, Period: 5 * second, Shutdown: 5 * second},
		},
		Processors: []Processor{
			{Name: text("camera"), Ident: "Camera", Instances: 1, Restart: Restart{Policy: Always, Given: true},
				Health: Health{Timeout: 30 * second, StartupTimeout: 10 * second}, Isolation: Process, Memory: 512 << 20, OnError: none},
			{Name: text("lidar"), Ident: "Lidar", Instances: 1, Restart: Restart{Policy: OnFailure}, Isolation: Goroutine,
				OnError: OnError{Then: Skip, Given: true, DeadLetterTo: -1}},
			{Name: text("planner"), Ident: "Planner", Instances: 1, Isolation: Goroutine,
				Restart: Restart{Policy: OnFailure, Given: true, MaxRestarts: 3, Delay: second / 2, MaxDelay: 30 * second, Window: minute, Jitter: 0.2},
				OnError: OnError{Then: Retry, Given: true, MaxAttempts: 3, Delay: second / 50, MaxDelay: 2 * second, Jitter: 0.5, DeadLetter: text("morgue"), DeadLetterTo: 3}},
			{Name: text("morgue"), Ident: "Morgue", Instances: 1, Isolation: Goroutine,
				Restart: Restart{Policy: OnFailure, Given: true, Delay: second, Jitter: 1}, OnError: none},
		},
		Edges: []Edge{
			{From: 0, To: 2, Message: text("Frame"), Capacity: 1024, Full: Block, InputTimeout: 5 * second},
			{From: 1, To: 2, Message: text("Points"), Capacity: 1024, Full: Block, InputTimeout: second, ArmAtStart: true},
			{From: -1, To: 0, Every: 100 * time.Millisecond, Capacity: 1024, Full: Block, InputTimeout: second},
		},
		Pool: Pool{Batch: 256, Rebalance: 5 * second, DrainTimeout: 10 * second},
	}
	if diff := cmp.Diff(want, got, values); diff != "" {
		t.Error(diff)
	}
}

func TestMergedKeys(t *testing.T) {
	got := parseClean(t, string(read(t, "testdata/parse/clean-anchors/input.yml")))
	var processors []string
	for _, p := range got.Processors {
		processors = append(processors, p.Name.Value)
	}
	if diff := cmp.Diff([]string{"feed", "store", "audit"}, processors); diff != "" {
		t.Error("processors", diff)
	}
	if store, audit := got.Processors[1], got.Processors[2]; store.Instances != 4 || !store.Blocking || audit.Instances != 2 || !audit.Blocking {
		t.Errorf("own keys must override merged keys: %+v, %+v", store, audit)
	}
	if first, second := got.Edges[0], got.Edges[1]; first.Capacity != 64 || second.Capacity != 8 || second.Route.Field.Value != "Account" {
		t.Errorf("the first merged mapping must override the later ones: %+v, %+v", first, second)
	}
}

// TestPlaces checks that each Text of the model is in the source at its position.
func TestPlaces(t *testing.T) {
	plain := string(read(t, "testdata/parse/clean-contract/input.yml"))
	for name, src := range map[string]string{
		"plain":           plain,
		"CRLF":            strings.ReplaceAll(plain, "\n", "\r\n"),
		"CR":              strings.ReplaceAll(plain, "\n", "\r"),
		"byte order mark": "\ufeff" + plain,
		"wide before":     "x-note: {日本: é} # ― 😀\n" + strings.ReplaceAll(plain, "  - feed", "  # größer\n  - feed"),
		"long lines":      "x-note: " + strings.Repeat("é", 5000) + "\n" + plain,
		"wide in line":    strings.ReplaceAll(plain, "with: {", "with: {\"日本\": é, "),
		"other breaks":    "# \u0085# \u2028# \u2029\n" + plain,
		"quotes":          strings.ReplaceAll(strings.ReplaceAll(plain, "feed -> parser", `"feed -> parser"`), "parser -> audit", "'parser -> audit'"),
		"anchors":         strings.ReplaceAll(plain, "- feed -> parser: Raw", "- &edge {? &key feed -> parser : &raw Raw}"),
	} {
		t.Run(name, func(t *testing.T) {
			topology := parseClean(t, src)
			lines := strings.Split(strings.ReplaceAll(strings.ReplaceAll(strings.TrimPrefix(src, "\ufeff"), "\r\n", "\n"), "\r", "\n"), "\n")
			found := 0
			eachText(reflect.ValueOf(topology), func(text Text) {
				if text.Pointer == "" {
					return
				}
				found++
				line := []rune(lines[text.At.Line-1])
				if text.At.EndLine != text.At.Line {
					t.Fatalf("%q is on several lines: %v", text.Value, text.At)
				}
				if there := strings.Trim(string(line[text.At.Column-1:text.At.EndColumn-1]), `"'`); there != text.Value {
					t.Errorf("the position of %q has the text %q", text.Value, there)
				}
			})
			if found < 40 {
				t.Errorf("the model has only %d texts", found)
			}
		})
	}
}

// eachText calls f for every Text in a value.
func eachText(v reflect.Value, f func(Text)) {
	if text, ok := v.Interface().(Text); ok {
		f(text)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			eachText(v.Elem(), f)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			eachText(v.Field(i), f)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		for i := range v.Len() {
			eachText(v.Index(i), f)
		}
	}
}

func TestPartial(t *testing.T) {
	topology, findings := Parse("topology.yml", []byte(`
version: 1
name: partial
processors: {feed: {instanses: 2}, parser: {}, store: {}}
edges:
  - feed -> parser: Raw
  - parser -> sore: Raw
  - parser -> store: Order
`))
	if len(findings) != 2 || topology == nil || !topology.Partial {
		t.Fatal(findings, topology)
	}
	if len(topology.Processors) != 2 || len(topology.Edges) != 1 {
		t.Fatalf("entries with an error are not left out: %+v", topology)
	}
	if e := topology.Edges[0]; e.From != 0 || e.To != 1 || e.Message.Value != "Order" {
		t.Errorf("the remaining edge leads from %d to %d", e.From, e.To)
	}
}

// TestPartialFailures leaves out a processor to which others refer by index.
func TestPartialFailures(t *testing.T) {
	topology, findings := Parse("topology.yml", []byte(`
version: 1
name: partial
processors:
  broken: {instances: 0}
  parser: {on_error: {then: skip, dead_letter: broken}}
  store: {on_error: {then: skip, dead_letter: morgue}}
  morgue: {}
groups:
  one: {processors: [broken, store]}
  two: {processors: [stor]}
edges:
  - parser -> store: Raw
  - store -> parser: Order
`))
	if len(findings) != 2 || topology == nil || !topology.Partial {
		t.Fatal(findings, topology)
	}
	checkPromises(t, topology, findings)
	if p := topology.Processors; len(p) != 3 || p[0].OnError.DeadLetterTo != -1 || p[1].OnError.DeadLetterTo != 2 {
		t.Errorf("dead letters of the remaining processors: %+v", p)
	}
	if g := topology.Groups; len(g) != 1 || len(g[0].Processors) != 1 || g[0].Processors[0] != 1 {
		t.Errorf("remaining groups: %+v", g)
	}
}

func TestExported(t *testing.T) {
	for name, want := range map[string]string{
		"line-parser": "LineParser", "line_parser": "LineParser", "lineParser": "LineParser", "http-api": "HttpApi",
		"api": "Api", "API": "API", "a1-2b": "A12b", "x": "X", "": "",
	} {
		if got := Exported(name); got != want {
			t.Errorf("Exported(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestUnreachable(t *testing.T) {
	topology := parseClean(t, `
version: 1
name: reach
processors: {feed: {}, parser: {}, ask: {}, answer: {}, sink: {}, ticked: {}, lonely: {}, api: {external: true}, served: {}, unused: {}} # TG401 is for unused
edges:
  - feed -> parser: Raw
  - ask -> answer: Question
  - answer -> ask: Reply
  - answer -> sink: Done
  - every 1s -> ticked
  - lonely -> lonely: Echo
  - api -> served: Quote
`)
	name := func(starts string) []string {
		var names []string
		for _, f := range Unreachable(topology, func(p int) bool { return topology.Processors[p].Name.Value == starts }) {
			if f.Severity != finding.Warning {
				t.Error(f)
			}
			names = append(names, strings.TrimPrefix(f.Pointer, "/processors/"))
		}
		return names
	}
	if diff := cmp.Diff([]string{"ask", "lonely"}, name("feed")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"feed", "lonely"}, name("answer")); diff != "" {
		t.Error(diff)
	}
}

// TestUnreachableMachines checks that the warning is for the controller, because only the
// controller sends to a processor of kind fsm.
func TestUnreachableMachines(t *testing.T) {
	topology := parseClean(t, `
version: 1
name: reach
processors:
  feed: {}
  parser: {}
  ledger: {kind: fsm, state: Book, update: Deposit, controller: desk}
  desk: {}
edges:
  - feed -> parser: Raw
`)
	findings := Unreachable(topology, func(p int) bool { return p == 0 })
	if len(findings) != 1 || findings[0].Pointer != "/processors/desk" {
		t.Errorf("got %v, want a warning for desk", findings)
	}
}

// TestUnreachableDeadLetters checks that a processor is reached by dead letters only if their
// sender is reached.
func TestUnreachableDeadLetters(t *testing.T) {
	topology := parseClean(t, `
version: 1
name: reach
processors:
  feed: {}
  parser: {on_error: {then: skip, dead_letter: morgue}}
  morgue: {}
  idle: {on_error: {then: skip, dead_letter: tomb}}
  tomb: {}
edges:
  - feed -> parser: Raw
  - morgue -> morgue: Again
  - idle -> idle: Echo
`)
	findings := Unreachable(topology, func(p int) bool { return p == 0 })
	if len(findings) != 1 || findings[0].Pointer != "/processors/idle" {
		t.Error(findings)
	}
}

func TestEarlyTimeouts(t *testing.T) {
	topology := parseClean(t, `
version: 1
name: early
processors: {gps: {on_error: {then: skip, dead_letter: log}}, imu: {}, camera: {}, asked: {}, log: {}, planner: {}, api: {external: true}}
edges:
  - every 10s -> gps
  - every 2s -> gps
  - every 2s -> imu
  - every 10s -> camera
  - every 10s -> asked
  - every 10s -> log
  - gps -> planner: {message: Fix, input_timeout: 2s}
  - gps -> planner: {message: Quality, input_timeout: 3s}
  - imu -> planner: {message: Turn, input_timeout: 1s}
  - camera -> planner: {message: Frame, input_timeout: 1s}
  - asked -> planner: {message: Question, reply: Answer, input_timeout: 1s}
  - log -> planner: {message: Line, input_timeout: 1s}
  - planner -> log: {message: Said, input_timeout: 1s}
  - api -> planner: {message: Order, input_timeout: 1s}
`)
	camera := func(p int) bool { return topology.Processors[p].Name.Value == "camera" } // it has Ping
	var edges []string
	for _, f := range Unreachable(topology, camera) {
		if f.Code != finding.Early || f.Severity != finding.Warning {
			t.Error(f)
		}
		edges = append(edges, f.Pointer)
	}
	if diff := cmp.Diff([]string{"/edges/6", "/edges/8"}, edges); diff != "" {
		t.Error(diff)
	}
}

// TestEarlyTimeoutsBehindATimer checks processors that only timers reach, directly or through
// other processors. They send at most as often as the fastest of these timers ticks.
func TestEarlyTimeoutsBehindATimer(t *testing.T) {
	topology := parseClean(t, `
version: 1
name: early
processors: {gps: {}, relay: {}, last: {}, mixed: {}, ball: {}, bat: {}, after: {}, camera: {}, shot: {}, silent: {}, planner: {}, api: {external: true}}
edges:
  - every 2s -> gps
  - gps -> relay: Fix
  - relay -> last: Fix
  - every 5s -> last
  - last -> planner: {message: Fix, input_timeout: 2s}
  - last -> planner: {message: Quality, input_timeout: 2001ms}
  - relay -> planner: {message: Fix, input_timeout: 1s}
  - relay -> mixed: Fix
  - api -> mixed: Order
  - mixed -> planner: {message: Fix, input_timeout: 1s}
  - relay -> ball: Fix
  - ball -> bat: Fix
  - bat -> ball: Hit
  - bat -> after: Hit
  - after -> planner: {message: Hit, input_timeout: 1s}
  - every 10s -> shot
  - camera -> shot: Frame
  - shot -> planner: {message: Frame, input_timeout: 1s}
  - silent -> planner: {message: Nothing, input_timeout: 1s}
`)
	camera := func(p int) bool { return topology.Processors[p].Name.Value == "camera" } // it has Ping
	var messages []string
	for _, f := range Unreachable(topology, camera) {
		if f.Code == finding.Early {
			messages = append(messages, f.Pointer+": "+f.Message)
		}
	}
	if diff := cmp.Diff([]string{
		`/edges/4: input_timeout should be longer than the 2s between two ticks of the timers that make "last" send, got 2s`,
		`/edges/6: input_timeout should be longer than the 2s between two ticks of the timers that make "relay" send, got 1s`,
	}, messages); diff != "" {
		t.Error(diff)
	}
}

// TestDrainTimeoutOfACluster: a node that is stopped while another node is down waits for
// retry.timeout, so the default of drain_timeout is longer.
func TestDrainTimeoutOfACluster(t *testing.T) {
	const cluster = "cluster: {nodes: {n1: \"127.0.0.1:7400\"}, retry: {timeout: %s}}\n"
	for _, c := range []struct {
		keys string
		want time.Duration
	}{
		{"", 10 * time.Second},
		{"cluster: {nodes: {n1: \"127.0.0.1:7400\"}}\n", 40 * time.Second},
		{fmt.Sprintf(cluster, "2m"), 130 * time.Second},
		{fmt.Sprintf(cluster, "2562047h47m16s"), math.MaxInt64},
		{fmt.Sprintf(cluster, "1s") + "pool: {drain_timeout: 2s}\n", 2 * time.Second},
		{fmt.Sprintf(cluster, "1s") + "pool: {drain_timeout: 0}\n", 0},
	} {
		if got := parseClean(t, "version: 1\nname: demo\n"+c.keys+"processors: {a: {}}\nedges: []\n").Pool.DrainTimeout; got != c.want {
			t.Errorf("%q: drain_timeout is %v, want %v", c.keys, got, c.want)
		}
	}
}
