package emit

import (
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/topogen/topogen/gen/plan"
)

func TestParseIdent(t *testing.T) {
	for _, name := range []string{"", "_", "a b", "a\nb", "a.b", "1a", "a-b", "func", "a;b", `a"`, "a*/", "a\x00", "a\u202e"} {
		if i, err := ParseIdent(name); err == nil {
			t.Errorf("%q is taken for the identifier %s", name, i)
		}
	}
	for _, name := range []string{"a", "Äa", "_a", "string", "A1"} {
		if _, err := ParseIdent(name); err != nil {
			t.Error(err)
		}
	}
}

func TestImportPath(t *testing.T) {
	for _, path := range []string{"", "a b", "a\"b", "a\nb", "a`b", "a\\b", "a;b", "a\u202eb"} {
		if p, err := importPath(path); err == nil {
			t.Errorf("%q is taken for the import path %s", path, p)
		}
	}
}

func TestCommentsStayComments(t *testing.T) {
	for _, hostile := range []string{
		"a\nfunc init() { panic(1) }", "a\r\nvar x = 1", "*/ func init() {} /*", "//go:linkname a b", "go:embed x", "\u2028x = 1", "a\x00b",
	} {
		for _, c := range comment("%s", hostile) {
			f := (&scope{}).file(&plan.Plan{Package: "p", ImportPath: "p"})
			f.Add(c)
			source := f.GoString()
			file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.ParseComments)
			if err != nil || len(file.Decls) > 0 {
				t.Errorf("%q became code (%v):\n%s", hostile, err, source)
			}
			for line := range strings.Lines(source) {
				if strings.HasPrefix(line, "//") && !strings.HasPrefix(line, "// ") && line != "//\n" {
					t.Errorf("%q became a directive: %s", hostile, line)
				}
			}
		}
	}
}

// TestHostilePlans gives Emit plans that earlier stages would refuse.
func TestHostilePlans(t *testing.T) {
	const bad = "A\nfunc init() {}\n"
	for name, spoil := range map[string]func(*plan.Plan){
		"processor":   func(p *plan.Plan) { p.Processors[0].Ident = bad },
		"local":       func(p *plan.Plan) { p.Processors[0].Local = bad },
		"type":        func(p *plan.Plan) { p.Processors[0].Type.Name = bad },
		"import":      func(p *plan.Plan) { p.Processors[0].Type.Import = "a\"\nb" },
		"edge":        func(p *plan.Plan) { p.Edges[0].Ident = bad },
		"message":     func(p *plan.Plan) { p.Edges[0].Message = bad },
		"messageType": func(p *plan.Plan) { p.Edges[0].Type.Name = bad },
		"key":         func(p *plan.Plan) { p.Edges[0].Access = []string{bad} },
		"link":        func(p *plan.Plan) { p.Links[0].Ident = bad },
		"send":        func(p *plan.Plan) { p.Processors[0].Sends[0].Name = bad },
		"handler":     func(p *plan.Plan) { p.Processors[1].Receives[0].Name = bad },
		"reply": func(p *plan.Plan) {
			p.Edges[0].Reply, p.Edges[0].ReplyType = "R", plan.TypeRef{Name: bad}
		},
		"interface": func(p *plan.Plan) { p.Processors[0].Ping.OutNames = []string{bad} },
		"interface of a handler": func(p *plan.Plan) {
			p.Processors[1].Receives[0].OutNames = []string{bad}
		},
		"constructor": func(p *plan.Plan) { p.Processors[0].New = &plan.Constructor{Func: bad} },
		"field": func(p *plan.Plan) {
			p.Processors[0].New.Config.Fields[0].Name = bad
		},
		"literal": func(p *plan.Plan) { p.Processors[0].New.Config.Fields[0].Value.Text = "f()" },
		"string":  func(p *plan.Plan) { p.Processors[0].New.Config.Fields[0].Value.Text = `"a" + f()` },
		"package": func(p *plan.Plan) { p.Package = bad },
	} {
		p := pair()
		if _, err := Emit(p, Options{Wiring: true}); err != nil {
			t.Fatal(err)
		}
		if spoil(p); emits(p) {
			t.Errorf("a spoilt %s gets through", name)
		}
	}
}

func emits(p *plan.Plan) bool {
	_, err := Emit(p, Options{Wiring: true})
	return err == nil
}

// pair is the plan of a -> b: M.
func pair() *plan.Plan {
	m := plan.TypeRef{Name: "M"}
	return &plan.Plan{
		Name: "pair", Source: "topology.yml", Package: "pair", ImportPath: "example.com/pair",
		Output: "topology_gen.go", PortsFile: "topology_ports_gen.go", Bound: true,
		Processors: []plan.Processor{
			{
				Name: "a", Ident: "A", Local: "a", Type: plan.TypeRef{Name: "A"}, Instances: 1, Outgoing: []int{0},
				Sends: []plan.Send{{Name: "SendM", Message: "M", Type: m, Edges: []int{0}, Error: true}},
				Calls: plan.Calls{Ping: &plan.Method{Name: "Ping", Out: plan.SenderOut, Error: true}, New: &plan.Constructor{Func: "NewA", Config: &plan.Literal{
					Type: plan.TypeRef{Name: "Config"}, Kind: plan.Struct,
					Fields: []plan.LiteralField{{Name: "N", Value: plan.Literal{Type: plan.TypeRef{Name: "int"}, Text: "-5"}}},
				}}},
			},
			{
				Name: "b", Ident: "B", Local: "b", Type: plan.TypeRef{Name: "B"}, Instances: 2, Incoming: []int{0},
				Calls: plan.Calls{Receives: []plan.Receive{{Edge: 0, Method: plan.Method{Name: "ReceiveM"}}}},
			},
		},
		Edges: []plan.Edge{{
			Ident: "ABM", From: 0, To: 1, Message: "M", Type: m, Route: plan.Key, Selector: plan.Selector{Access: []string{"ID"}}, Capacity: 1024, Full: "block", ReplyEdge: -1, ReplyOf: -1,
		}},
		Links: []plan.Link{{From: 0, To: 1, Ident: "aToB", Edges: []int{0}}},
	}
}

func TestAliases(t *testing.T) {
	for path, want := range map[string]Ident{
		"example.com/a/v2": "a", "gopkg.in/yaml.v3": "yaml", "example.com/go-thing": "gothing", "example.com/1/2": "pkg", "v2": "v2",
		"example.com/A.B": "ab",
	} {
		if got := packageName(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
