package graph

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/spec"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var formats = []struct {
	ext   string
	write func(Graph) []byte
}{{"mmd", Mermaid}, {"dot", DOT}, {"json", JSON}, {"svg", SVG}, {"txt", Table}}

func TestGolden(t *testing.T) {
	for _, f := range formats {
		t.Run(f.ext, func(t *testing.T) {
			golden(t, "shop."+f.ext, f.write(shop()))
			golden(t, "shop-load."+f.ext, f.write(loaded(shop(), 2)))
		})
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s (-want +got):\n%s", file, d)
	}
}

func TestSameBytes(t *testing.T) {
	for _, g := range []Graph{shop(), loop(), company(speed.Pick(t, 20, 60, 60), 1), tangle(30, 60, 1), hostile(), loaded(hostile(), 1)} {
		for _, f := range formats {
			first := f.write(g)
			for range 2 {
				if !bytes.Equal(first, f.write(g)) {
					t.Errorf("%s of %s differs between calls", f.ext, g.Name)
				}
			}
			if bytes.ContainsRune(first, '\r') || !bytes.HasSuffix(first, []byte("\n")) {
				t.Errorf("%s of %s: line ends", f.ext, g.Name)
			}
		}
	}
}

func TestEmptyGraph(t *testing.T) {
	for _, f := range formats {
		if len(f.write(Graph{})) == 0 {
			t.Errorf("%s of nothing is empty", f.ext)
		}
		f.write(Graph{Edges: []Edge{{From: 3, To: -1}}})
	}
	if got, want := string(JSON(Graph{})), "{\n  \"name\": \"\",\n  \"nodes\": [],\n  \"edges\": []\n}\n"; got != want {
		t.Errorf("JSON of nothing: %s", got)
	}
}

func TestHostileSVG(t *testing.T) {
	g := hostile()
	g.Edges = append(g.Edges, Edge{To: 0, Message: "self"})
	allowed := map[string]bool{"svg": true, "title": true, "style": true, "rect": true, "text": true, "tspan": true, "g": true, "path": true}
	dec := xml.NewDecoder(bytes.NewReader(SVG(g)))
	dec.Strict = true
	for {
		tok, err := dec.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := tok.(xml.StartElement); ok {
			if !allowed[e.Name.Local] {
				t.Errorf("element %s", e.Name.Local)
			}
			for _, a := range e.Attr {
				if strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "href" {
					t.Errorf("attribute %s", a.Name.Local)
				}
			}
		}
	}
	check(t, g, "hostile")
	check(t, loaded(g, 1), "hostile with a load")
}

func TestHostileText(t *testing.T) {
	g := hostile()
	// One line for each node and edge, with one quoted text.
	things := len(g.Nodes) + len(g.Edges)
	for _, r := range string(Table(g)) {
		if r != '\n' && unicode.IsControl(r) {
			t.Errorf("the tables hold %q", r)
		}
	}
	if n := bytes.Count(Mermaid(g), []byte("\n")); n != 1+things {
		t.Errorf("%d lines of Mermaid, want %d", n, 1+things)
	}
	if n := bytes.Count(Mermaid(g), []byte(`"`)); n != 2*things {
		t.Errorf("%d quotes in Mermaid, want %d", n, 2*things)
	}
	for i, line := range strings.Split(strings.TrimSuffix(string(DOT(g)), "\n"), "\n") {
		bare := strings.NewReplacer(`\\`, "", `\"`, "").Replace(line)
		if strings.Count(bare, `"`)%2 != 0 {
			t.Errorf("line %d of DOT leaves a string open: %s", i+1, line)
		}
	}
	var back Graph
	if err := json.Unmarshal(JSON(g), &back); err != nil {
		t.Fatal(err)
	}
	if back.Nodes[2].Name != g.Nodes[2].Name {
		t.Errorf("JSON changed %q to %q", g.Nodes[2].Name, back.Nodes[2].Name)
	}
}

func TestMermaidText(t *testing.T) {
	for in, want := range map[string]string{
		"line-parser":    "line-parser",
		"pricing.Engine": "pricing.Engine",
		`a"b`:            "a#34;b",
		"#quot;":         "#35;quot;",
		"<b>&`":          "#60;b#62;#38;#96;",
		"1. x":           "1#46; x",
		"- x":            "#45; x",
		"*model.Page":    "#42;model.Page",
		"a\nb":           "a b",
	} {
		if got := mermaidText(in); got != want {
			t.Errorf("mermaidText(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestShortType(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "Engine": "Engine", "example.com/shop/pricing.Engine": "pricing.Engine",
		"*example.com/model.Page[example.com/x.T, map[string]a/b.C]": "*model.Page[x.T, map[string]b.C]",
	} {
		if got := shortType(in); got != want {
			t.Errorf("shortType(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestFit(t *testing.T) {
	f := font{size: 12}
	for _, s := range []string{"", "short", strings.Repeat("long ", 40), strings.Repeat("語", 90), "\xff\xff"} {
		for _, limit := range []int{20, 80, 200} {
			if got := f.fit(s, limit); f.width(got) > limit {
				t.Errorf("fit(%q, %d) is %d wide", s, limit, f.width(got))
			}
		}
	}
}

func TestFromTopology(t *testing.T) {
	text := func(s string) spec.Text { return spec.Text{Value: s} }
	key := func(f string) spec.Route { return spec.Route{Kind: spec.RouteKey, Field: text(f)} }
	topology := &spec.Topology{
		Name: text("orders"),
		Processors: []spec.Processor{
			{Name: text("line-parser"), Ident: "LineParser", Instances: 1},
			{Name: text("pricing"), Ident: "Pricing", Type: text("example.com/shop/pricing.Engine"), Instances: 8, Blocking: true},
			{Name: text("api"), Ident: "Api", Instances: 1, External: true},
		},
		Edges: []spec.Edge{
			{From: 0, To: 1, Message: text("Order"), Route: key("Account"), Capacity: 1024, Full: spec.Block},
			{From: 2, To: 1, Message: text("Quote"), Reply: text("Price"), Timeout: 2 * time.Minute, Route: key("Account"), Capacity: 4096, Full: spec.Block},
			{From: -1, To: 0, Every: 90 * time.Second, Capacity: 1024},
			{From: 1, To: 1, Message: text("Retry"), Route: spec.Route{Kind: spec.RouteRange, Offset: 2, Count: 3}, Capacity: 64, Full: spec.DropOldest, Shared: true},
			{From: 1, To: 0, Message: text("Done"), Capacity: 1024, Full: spec.Fail},
			{From: 0, To: 1, Message: text("Stop"), Route: spec.Route{Kind: spec.RouteBroadcast}, Capacity: 1024, Full: spec.Block},
			{From: -1, To: 1, Every: time.Hour, Capacity: 1024},
		},
	}
	want := Graph{
		Name: "orders",
		Nodes: []Node{
			{Name: "line-parser", Type: "LineParser", Instances: 1},
			{Name: "pricing", Type: "example.com/shop/pricing.Engine", Instances: 8, Blocking: true},
			{Name: "api", External: true},
			{Name: "every 1m30s", Timer: true},
			{Name: "every 1h", Timer: true},
		},
		Edges: []Edge{
			{From: 0, To: 1, Message: "Order", Note: "key Account"},
			{From: 2, To: 1, Message: "Quote", Reply: "Price", Note: "key Account, capacity 4096, timeout 2m"},
			{From: 3, To: 0, Message: "Tick"},
			{From: 1, To: 1, Message: "Retry", Note: "range 2–4, drop-oldest 64, shared"},
			{From: 1, To: 0, Message: "Done", Note: "fail 1024"},
			{From: 0, To: 1, Message: "Stop", Note: "broadcast"},
			{From: 4, To: 1, Message: "Tick"},
		},
	}
	if d := cmp.Diff(want, FromTopology(topology)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
