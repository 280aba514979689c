package verify

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/topogen/topogen/gen/bind"
	"github.com/topogen/topogen/gen/emit"
	"github.com/topogen/topogen/spec"
)

// chain binds a topology of so many steps, each of which also sends to the last
// processor, and emits it.
func chain(t *testing.T, steps int) (*bind.Result, []emit.File) {
	t.Helper()
	if err := os.MkdirAll("testdata", 0o755); err != nil {
		t.Fatal(err)
	}
	// Inside this module, which has the runtime, and where "./..." does not look: other
	// tests list packages at the same time.
	dir, err := os.MkdirTemp("testdata", "chain")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if dir, err = filepath.Abs(dir); err != nil {
		t.Fatal(err)
	}
	yml := "version: 1\nname: chain\nprocessors:\n  last: {}\n"
	edges := "edges:\n"
	code := "package chain\n\ntype Report struct{ N int }\n\ntype Last struct{}\n\nfunc (*Last) ReceiveReport(*Report) {}\n"
	for i := range steps {
		yml += fmt.Sprintf("  step%d: {}\n", i)
		edges += fmt.Sprintf("  - step%d -> last: Report\n", i)
		if i > 0 {
			edges += fmt.Sprintf("  - step%d -> step%d: Message%d\n", i-1, i, i)
		}
		code += fmt.Sprintf("\ntype Message%d struct{ N int }\n\ntype Step%[1]d struct{}\n", i)
		if i == 0 {
			code += "\nfunc (*Step0) Ping(out *Step0Sender) error { return out.SendReport(Report{}) }\n"
		} else {
			code += fmt.Sprintf("\nfunc (*Step%d) ReceiveMessage%[1]d(m *Message%[1]d, out *Step%[1]dSender) { out.SendReport(Report{}) }\n", i)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "code.go"), []byte(code), 0o644); err != nil {
		t.Fatal(err)
	}
	topology, findings := spec.Parse(filepath.Join(dir, "topology.yml"), []byte(yml+edges))
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	results, err := bind.Bind(t.Context(), []bind.Input{{Topology: topology}}, bind.Options{Imports: emit.Imports()})
	if err != nil || !results[0].Plan.Bound {
		t.Fatal(err, results[0].Findings)
	}
	emitted, err := emit.Emit(results[0].Plan, emit.Options{Wiring: true, Declared: results[0].Declares()})
	if err != nil {
		t.Fatal(err)
	}
	return results[0], emitted
}

// TestAlike holds what comes of checking one function of each form against what
// comes of checking all.
func TestAlike(t *testing.T) {
	b, emitted := chain(t, 60)
	all, err := files(context.Background(), b, emitted, Options{Whole: true})
	if err != nil || len(all.Own) > 0 {
		t.Fatal(err, all.Own)
	}
	some, err := files(context.Background(), b, emitted, Options{})
	if err != nil || len(some.Own) > 0 {
		t.Fatal(err, some.Own)
	}
	for i, f := range all.Files {
		if !bytes.Equal(f.Body, some.Files[i].Body) {
			t.Errorf("%s differs", f.Name)
		}
	}
	var parts []*part
	for _, f := range emitted {
		for _, source := range f.Parts {
			parts = append(parts, &part{source: source})
		}
	}
	reduce(b, parts)
	checked, functions := 0, 0
	for _, p := range parts {
		for _, piece := range p.pieces {
			if piece.body > 0 {
				functions++
				if piece.use == whole {
					checked++
				}
			}
		}
	}
	if checked*5 > functions {
		t.Errorf("%d of %d functions are checked", checked, functions)
	}
}

// TestWrongIsFound spoils what was emitted, in all functions of a form or in one
// of them.
func TestWrongIsFound(t *testing.T) {
	b, emitted := chain(t, 60)
	for _, c := range []struct{ name, old, new string }{
		{"unknown name in all", "return s.step", "return s.stepp"},
		{"unknown name in one", "return s.step17\n", "return s.step177\n"},
		{"name of another kind in one", "s.step17 = s.links.toStep17 (s)", "s.step17 = s.links.toLast (s)"},
		{"method of the runtime in one", "l.message17 . Release (n)", "l.message17 . Releas (n)"},
		{"message for a link in one", "l := & step17FromStep16 {", "l := & Message17 {"},
		{"another number of results in one", "func (s *Step16Sender) toStep17 () *step16ToStep17 {", "func (s *Step16Sender) toStep17 () (*step16ToStep17, error) {"},
		{"number in one", "to: & j.step17 [0]", "to: & j.step17 [1]"},
		{"unknown type in one", "type step17Joiner Topology", "type step17Joinr Topology"},
		{"user's member in one", "s.toStep17 () . message17 . Put (m)", "s.toStep17 () . message17 . Put (m.None)"},
		{"missing method", "ReceiveMessage17 (m * Message17,out *Step17Sender)", "ReceiveMessage18 (m * Message17,out *Step17Sender)"},
	} {
		spoiled, found := make([]emit.File, len(emitted)), false
		for i, f := range emitted {
			spoiled[i].Name = f.Name
			for _, source := range f.Parts {
				text := strings.ReplaceAll(string(source), c.old, c.new)
				found = found || text != string(source)
				spoiled[i].Parts = append(spoiled[i].Parts, []byte(text))
			}
		}
		if !found {
			t.Fatalf("%s: nothing like %q is emitted", c.name, c.old)
		}
		v, err := files(context.Background(), b, spoiled, Options{})
		if err != nil || len(v.Own) == 0 {
			t.Errorf("%s: not found (%v)", c.name, err)
		}
	}
}

// TestSplit holds split against sources that it must leave alone.
func TestSplit(t *testing.T) {
	for source, want := range map[string]int{
		"package p\n\n\n// a\n// b\nfunc f () {\n}\n\n\ntype t struct{\n}\n": 2,
		"package p\nimport (\n\"a\"\n)\nvar x = `}\n`\n":                     1,
		"package p\nconst c = '}'\nfunc f () interface{} { return 1 }\n":     2,
		"package p\n\n// lost\n\nfunc f () {\n}\n":                           -1,
		"package p\n/* x */\nfunc f () {\n}\n":                               -1,
		"package p\nfunc f () {\n":                                           -1,
		"package p\nvar x = \"\n":                                            -1,
	} {
		_, pieces, ok := split([]byte(source))
		if ok != (want >= 0) || ok && len(pieces) != want {
			t.Errorf("%q: %v, %d pieces", source, ok, len(pieces))
		}
	}
}
