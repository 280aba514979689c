package lifetime

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSuspects checks bodies of func (a *A) ReceiveM(ctx context.Context, m *M, out *ASender) error.
func TestSuspects(t *testing.T) {
	for body, want := range map[string]bool{
		`a.n += m.N; return nil`:                                            false,
		`a.last = *m; out.SendM(*m); return nil`:                            false,
		`if m == nil { return ctx.Err() }; a.body = m.Body[1:]; return nil`: true, // Body may be an array
		`a.list = append(a.list, m.Body...); return nil`:                    false,
		`return a.help(m, out)`:                                             true, // Check knows better
		`return a.keep(m)`:                                                  true,
		`a.last = m; return nil`:                                            true,
		`a.p = &m.N; return nil`:                                            true,
		`return json.Unmarshal(m.Body, &m.N)`:                               true, // Check knows better
		`go out.SendM(*m); return nil`:                                      true,
		`a.out = out; return nil`:                                           true,
		`send := out.SendM; send(*m); return nil`:                           true,
		`ctx, cancel := context.WithTimeout(ctx, 1); defer cancel(); return db.Query(ctx)`: true, // Check knows better
		`ctx, cancel := context.WithTimeout(ctx, 1); a.cancel = cancel; return nil`:        true,
		`a.ctx = ctx; return nil`:                                                true,
		`a.ctx = context.WithValue(ctx, 1, 2); return nil`:                       true,
		`sort.Slice(a.list, func(i, j int) bool { return m.N > i }); return nil`: true, // Check knows better
		`a.f = func() { m.N++ }; return nil`:                                     true,
		`defer func() { m.N++ }(); return nil`:                                   true, // Check knows better
		`time.AfterFunc(1, func() { m.N++ }); return nil`:                        true,
		`a.n = m.Size(); return nil`:                                             true, // Check knows better
		`a.last = m.Self(); return nil`:                                          true,
		`a.last = &*m; return nil`:                                               true,
		`return a.recurse(m)`:                                                    true, // Check knows better
	} {
		const rest = `
func (a *A) help(m *M, out *ASender) error { out.SendM(*m); return nil }
func (a *A) keep(m *M) error { a.last = m; return nil }
func (a *A) recurse(m *M) error { return a.recurse(m) }
func (m *M) Size() int { return m.N }
func (m *M) Self() *M { return m }
`
		file, err := parser.ParseFile(token.NewFileSet(), "a.go",
			"package a\nfunc (a *A) ReceiveM(ctx context.Context, m *M, out *ASender) error {"+body+"}\n"+rest, parser.SkipObjectResolution)
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		handlers := []Handler{{Type: "A", Name: "ReceiveM", Params: []Kind{Context, Message, Sender}}}
		if got := len(Suspects([]*ast.File{file}, handlers)) > 0; got != want {
			t.Errorf("%s: suspect %v, want %v", body, got, want)
		}
	}
}

// TestSuspectUpdates checks bodies of methods of an update, whose receiver must not be kept.
func TestSuspectUpdates(t *testing.T) {
	for head, want := range map[string]bool{
		`func (u *U) Update(s *S) { s.n += u.N; s.list = append(s.list, *u) }`: false,
		`func (*U) Update(s *S) { s.last = s.first }`:                          false,
		`func (_ *U) Update(s *S) { s.last = s.first }`:                        false,
		`func (u *U) Update(s *S) { s.last = u }`:                              true,
		`func (u *U) Update(s *S) { s.list = append(s.list, u) }`:              true,
		`func (u *U) Update(s *S) { s.p = &u.N }`:                              true,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "a.go", "package a\n"+head, parser.SkipObjectResolution)
		if err != nil {
			t.Fatalf("%s: %v", head, err)
		}
		if got := len(Suspects([]*ast.File{file}, []Handler{{Type: "U", Name: "Update", Receiver: Update}})) > 0; got != want {
			t.Errorf("%s: suspect %v, want %v", head, got, want)
		}
	}
}

// TestFactsAreForSuspects checks that only suspicious methods with names of handlers get facts,
// and that an alias does not list a method twice.
func TestFactsAreForSuspects(t *testing.T) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "a.go", `package a
type M struct{ N int }
type A struct{ n int; last *M }
type B = A
func (a *A) Ping() {}
func (a *A) ReceiveN(m *M) { a.n = m.N }
func (a *A) ReceiveM(m *M) { a.last = m }
func (a *A) receive(m *M) { a.last = m }
func (m *M) Update(a *A) { a.last = m }
func (m *M) Revert(a *A) { a.n -= m.N }
func (m M) UpdateAt(a *A) { a.last = &m }
`, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	pkg := &Package{Fset: fset, Info: NewInfo(), Files: []*ast.File{file}}
	if pkg.Types, err = new(types.Config).Check("a", fset, pkg.Files, pkg.Info); err != nil {
		t.Fatal(err)
	}
	want := []Handler{{Type: "A", Name: "ReceiveM", Params: []Kind{Message}}, {Type: "M", Name: "Update", Receiver: Update}}
	if diff := cmp.Diff(want, newRecognizer(pkg).unasserted()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
