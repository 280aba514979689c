package graph

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/topogen/topogen/internal/test/allocated"
	"github.com/topogen/topogen/spec"
	"github.com/topogen/topogen/spec/finding"
)

const shopFile = `version: 1
name: shop
processors:
  feed: {}
  parser: {instances: 2}
  api: {external: true}
edges:
  - feed -> parser: {message: Line, route: broadcast}
  - api -> parser: {message: Line, key: Text}
  - every 1s -> feed
  - parser -> feed: {message: Back, capacity: 8}
  - every 2s -> feed
  - parser -> parser: {message: Again, route: {range: {offset: 1, count: 1}}}
  - parser -> parser: {message: Next, route: local}
`

func shopTopology(t testing.TB) *spec.Topology {
	t.Helper()
	topology, findings := spec.Parse("topology.yml", []byte(shopFile))
	if finding.HasErrors(findings) {
		t.Fatal(findings)
	}
	return topology
}

const shopSnapshot = `{"time":"2026-03-04T05:06:07Z","elapsed":10000,"workers":2,"later":{"a":[1,{}]},"processors":[
 {"name":"parser","instances":[{"worker":0,"moves":1,"busy":5000,"paused":0,"len":1,"received":7},{"busy":7000,"paused":100,"received":8}]},
 {"name":"feed","instances":[{"busy":20000,"received":1}]},
 {"name":"api","instances":null}],"edges":[
 {"from":"","every":2000000000,"to":"feed","message":"Tick","len":0,"sent":5,"received":4,"dropped":1},
 {"from":"","every":1000000000,"to":"feed","message":"Tick","len":0,"sent":3,"received":3,"dropped":0},
 {"from":"feed","to":"parser","message":"Line","len":1,"sent":6,"received":5,"dropped":0},
 {"from":"api","to":"parser","message":"Line","len":2,"sent":7,"received":5,"dropped":0},
 {"from":"parser","to":"parser","message":"Again","len":0,"sent":9,"received":9,"dropped":0},
 {"from":"parser","to":"parser","message":"Next","len":0,"sent":10,"received":10,"dropped":0},
 {"from":"parser","to":"feed","message":"Back","len":15,"sent":8,"received":1,"dropped":0}]}`

func TestWithLoad(t *testing.T) {
	topology := shopTopology(t)
	s, err := ParseSnapshot([]byte(shopSnapshot))
	if err != nil {
		t.Fatal(err)
	}
	g, findings := WithLoad(topology, s, "load.json")
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	if want := (&Load{Until: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC), Elapsed: 10 * time.Microsecond, Workers: 2}); !cmp.Equal(g.Load, want) {
		t.Errorf("%+v", g.Load)
	}
	nodes := []*NodeLoad{{Busy: Spread{1000, 1000}, Received: 1}, {Busy: Spread{600, 700}, Paused: Spread{5, 10}, Received: 15}, nil, nil, nil}
	for i, n := range g.Nodes {
		if d := cmp.Diff(nodes[i], n.Load); d != "" {
			t.Errorf("%s (-want +got):\n%s", n.Name, d)
		}
	}
	edges := []*EdgeLoad{
		{Capacity: 1024, Queues: 2, Len: 1, Sent: 6}, {Capacity: 1024, Queues: 2, Len: 2, Sent: 7}, {Queues: 1, Sent: 3},
		{Capacity: 8, Queues: 2, Len: 15, Sent: 8}, {Queues: 1, Sent: 5, Dropped: 1}, {Capacity: 1024, Queues: 2, Sent: 9}, {Capacity: 1024, Queues: 2, Sent: 10},
	}
	for i, e := range g.Edges {
		if d := cmp.Diff(edges[i], e.Load); d != "" {
			t.Errorf("edge %d (-want +got):\n%s", i, d)
		}
	}
}

// TestMismatch changes the snapshot and checks the findings.
func TestMismatch(t *testing.T) {
	topology := shopTopology(t)
	for _, c := range []struct {
		old, new string
		want     []string
	}{
		{`"name":"parser"`, `"name":"\u001b[31mparsr"`, []string{
			`topology.yml:5 processor "parser" is not in the snapshot`,
			`load.json:0 the snapshot does not match the topology: processor "\x1b[31mparsr" is not in the topology`,
		}},
		{`"name":"api"`, `"name":"feed"`, []string{
			`load.json:0 the snapshot does not match the topology: it lists processor "feed" twice`,
			`topology.yml:4 processor "feed" has 1 instance in the topology, but 0 instances in the snapshot`,
			`topology.yml:6 processor "api" is not in the snapshot`,
		}},
		{`{"busy":20000,"received":1}`, ``, []string{`topology.yml:4 processor "feed" has 1 instance in the topology, but 0 instances in the snapshot`}},
		{`"instances":null`, `"instances":[{}]`, []string{`topology.yml:6 processor "api" has 0 instances in the topology, but 1 instance in the snapshot`}},
		{`"message":"Back"`, `"message":"Forth"`, []string{
			`topology.yml:11 edge parser -> feed: Back is not in the snapshot`,
			`load.json:0 the snapshot does not match the topology: edge "parser -> feed: Forth" is not in the topology`,
		}},
		{`"from":"","every":2000000000`, `"from":"api"`, []string{
			`topology.yml:12 edge every 2s -> feed is not in the snapshot`,
			`load.json:0 the snapshot does not match the topology: edge "api -> feed: Tick" is not in the topology`,
		}},
		{`"every":1000000000`, `"every":60000000000`, []string{
			`topology.yml:10 edge every 1s -> feed is not in the snapshot`,
			`load.json:0 the snapshot does not match the topology: edge "every 1m -> feed" is not in the topology`,
		}},
	} {
		changed := strings.Replace(shopSnapshot, c.old, c.new, 1)
		s, err := ParseSnapshot([]byte(changed))
		if err != nil || changed == shopSnapshot {
			t.Fatal(c, err)
		}
		_, findings := WithLoad(topology, s, "load.json")
		var got []string
		for _, f := range findings {
			if _, known := finding.Explain(f.Code); !known || f.Severity != finding.Error {
				t.Errorf("%+v", f)
			}
			got = append(got, fmt.Sprintf("%s:%d %s", f.File, f.Range.Line, f.Message))
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.new, d)
		}
	}
}

func TestMismatchesAreBounded(t *testing.T) {
	s := &Snapshot{}
	for i := range 1000 {
		s.Processors = append(s.Processors, ProcessorFigures{Name: strconv.Itoa(i)})
	}
	_, findings := WithLoad(shopTopology(t), s, "load.json")
	if n := len(findings); n != mismatchesMax+1 {
		t.Errorf("%d findings", n)
	}
	if got, want := findings[mismatchesMax].Message, "the snapshot does not match the topology in 990 places more"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestParseSnapshotRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "byte 0: unexpected end of JSON input",
		"{} {}":                         "byte 4: invalid character '{' after top-level value",
		"{}":                            "it lacks elapsed, processors or edges",
		"null":                          "it lacks elapsed, processors or edges",
		"[]":                            "it is a JSON array",
		`{"elapsed":1,"processors":[]}`: "it lacks elapsed, processors or edges",
		`{"elapsed":"1s","processors":[],"edges":[]}`:                              "byte 15: elapsed is a JSON string",
		`{"elapsed":-1,"processors":[],"edges":[]}`:                                "elapsed or workers is negative",
		`{"elapsed":1,"processors":[],"edges":[{"from":"a","len":-1}]}`:            `len of edge "a -> : " is negative`,
		`{"elapsed":1,"processors":[],"edges":[{"sent":-1}]}`:                      "byte 48: edges.sent is a JSON number -1",
		`{"elapsed":1,"processors":[{"name":"a","instances":[{"busy":-1}]}]}`:      "it lacks elapsed, processors or edges",
		`{"elapsed":1,"edges":[],"processors":[{"instances":[{},{"paused":-1}]}]}`: `busy or paused of processor "", instance 1, is negative`,
		strings.Repeat("[", 100_000):                                               "byte 10001: invalid character '[' exceeded max depth",
		strings.Repeat(" ", SnapshotMax+1):                                         "it has more than 16 MiB",
	} {
		if _, err := ParseSnapshot([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%.80q: %v, want %s", text, err, want)
		}
	}
}

func FuzzSnapshot(f *testing.F) {
	f.Add([]byte(shopSnapshot))
	f.Add([]byte(`{"elapsed":0,"processors":[],"edges":[]}`))
	topology := shopTopology(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		var s *Snapshot
		var err error
		const types = 16 << 10                                                            // encoding/json describes each type when it is first used
		allocated.Within(t, types+200*len(text), func() { s, err = ParseSnapshot(text) }) // {} is an edge
		if err != nil {
			return
		}
		g, _ := WithLoad(topology, s, "load.json") // also what fits in part
		check(t, g, "with a load")
		for _, format := range formats {
			format.write(g)
		}
	})
}

func TestNumbers(t *testing.T) {
	for n, want := range map[uint64]string{
		0: "0", 9999: "9999", 10_000: "10 k", 12_345: "12.3 k", 123_456: "123 k", 999_999: "999 k", 1_000_000: "1 M",
		1_999_999: "1.99 M", 12_000_000_000: "12 G", math.MaxUint64: "18.4 E",
	} {
		if got := amount(n); got != want {
			t.Errorf("amount(%d) = %q, want %q", n, got, want)
		}
	}
	for thousandths, want := range map[int]string{0: "0 %", 1: "<1 %", 5: "1 %", 14: "1 %", 994: "99 %", 1000: "100 %"} {
		if got := percent(thousandths); got != want {
			t.Errorf("percent(%d) = %q, want %q", thousandths, got, want)
		}
	}
	for _, c := range []struct {
		part, whole int64
		want        int
	}{{0, 0, 0}, {5, 0, 0}, {1, 3, 333}, {4, 3, 1000}, {math.MaxInt64 / 2, math.MaxInt64, 499}, {math.MaxInt64, math.MaxInt64, 1000}} {
		if got := share(c.part, c.whole); got != c.want {
			t.Errorf("share(%d, %d) = %d, want %d", c.part, c.whole, got, c.want)
		}
	}
	for d, want := range map[time.Duration]string{
		0: "0s", 999: "999ns", 12345 * time.Millisecond: "12.35s", 150*time.Second + 1: "2m30s",
		30*time.Hour + 10*time.Second: "30h", 45 * time.Minute: "45m",
	} {
		if got := lasting(d); got != want {
			t.Errorf("lasting(%d) = %q, want %q", d, got, want)
		}
	}
	for _, c := range []struct {
		sent, most uint64
		want       int
	}{{0, 0, 0}, {0, 100, 0}, {1, 100, 1}, {4, 100, 1}, {5, 100, 2}, {37, 100, 4}, {100, 100, 5}, {math.MaxUint64, math.MaxUint64, 5}, {1, math.MaxUint64, 1}} {
		if got := (&EdgeLoad{Sent: c.sent}).traffic(c.most); got != c.want {
			t.Errorf("traffic of %d of %d: %d, want %d", c.sent, c.most, got, c.want)
		}
	}
	if got := sum(math.MaxUint64, 2); got != math.MaxUint64 {
		t.Errorf("sum %d", got)
	}
}

// TestColoursOfHeat checks that text on each colour has the contrast of WCAG 2 for small text,
// and that the order of the colours is visible without colour.
func TestColoursOfHeat(t *testing.T) {
	for name, scale := range map[string]struct {
		fills [heats + 1]string
		text  string
		sign  float64
	}{"light": {heatFills, heatText, -1}, "dark": {heatDark, heatTextDark, 1}} {
		for step, fill := range scale.fills {
			a, b := luminance(t, fill), luminance(t, scale.text)
			if contrast := (max(a, b) + 0.05) / (min(a, b) + 0.05); contrast < 4.5 {
				t.Errorf("%s, %d: the contrast is %.1f", name, step, contrast)
			}
			if step > 0 && (a-luminance(t, scale.fills[step-1]))*scale.sign <= 0 {
				t.Errorf("%s: %d is not beyond %d", name, step, step-1)
			}
		}
	}
}

// luminance is the relative luminance of WCAG 2.
func luminance(t *testing.T, colour string) float64 {
	rgb, err := strconv.ParseUint(colour[1:], 16, 24)
	if err != nil {
		t.Fatal(err)
	}
	linear := func(shift int) float64 {
		c := float64(rgb>>shift&0xff) / 255
		if c <= 0.04045 {
			return c / 12.92
		}
		return math.Pow((c+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(16) + 0.7152*linear(8) + 0.0722*linear(0)
}

// TestTimersWithNames checks that timers of one period are told apart by their names.
func TestTimersWithNames(t *testing.T) {
	topology, findings := spec.Parse("topology.yml", []byte("version: 1\nname: shop\nprocessors: {feed: {}}\nedges:\n  - every 1s as poll -> feed\n  - every 1s as flush -> feed\n"))
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	snapshot := `{"time":"2026-03-04T05:06:07Z","elapsed":10000,"workers":2,"processors":[{"name":"feed","instances":[{}]}],"edges":[
 {"every":1000000000,"to":"feed","message":"TickFlush","sent":5},{"every":1000000000,"to":"feed","message":"TickPoll","sent":7}]}`
	s, err := ParseSnapshot([]byte(snapshot))
	if err != nil {
		t.Fatal(err)
	}
	g, findings := WithLoad(topology, s, "load.json")
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	for i, want := range []struct {
		name, message string
		sent          uint64
	}{{"every 1s as poll", "TickPoll", 7}, {"every 1s as flush", "TickFlush", 5}} {
		e := g.Edges[i]
		if n := g.Nodes[e.From]; n.Name != want.name || e.Message != want.message || e.Load.Sent != want.sent {
			t.Errorf("%q, %q, %d sent, want %v", n.Name, e.Message, e.Load.Sent, want)
		}
	}
	s.Edges[0].Message = "TickOther"
	_, findings = WithLoad(topology, s, "load.json")
	if len(findings) != 2 || !strings.Contains(findings[0].Message+findings[1].Message, `edge every 1s -> feed: TickFlush is not in the snapshot`) {
		t.Error(findings)
	}
}
