package lifetime

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"strings"

	"github.com/topogen/topogen/gen/header"
	"golang.org/x/tools/go/analysis"
)

// Analyzer reports handlers that keep parameters, for "go vet -vettool". It recognizes
// handlers by the assertions in generated files. In a package without such files, a
// method with the name of a handler gets a fact. The package that asserts the handler
// reads this fact.
var Analyzer = &analysis.Analyzer{
	Name:      "topogenlifetime",
	Doc:       "report handlers that keep a message pointer, an update pointer, a sender or a context after they return\n\nThey are valid only during the call. A later read through them returns wrong data, and a later send is lost.",
	URL:       "https://pkg.go.dev/github.com/topogen/topogen/gen/lifetime",
	Run:       run,
	FactTypes: []analysis.Fact{new(keeps)},
}

// keeps is a fact about a method: the places where it keeps its parameters. Whether the method
// is a handler, and the kind of each parameter, is known only in the package that asserts it.
type keeps struct{ List []kept }

type kept struct {
	Param int // index; -1: the receiver
	Kind  Kind
	Text  string // the position and the message of the finding
}

func (*keeps) AFact() {}

func (k *keeps) String() string { return fmt.Sprintf("keeps %d parameters", len(k.List)) }

func run(pass *analysis.Pass) (any, error) {
	pkg := &Package{Fset: pass.Fset, Types: pass.Pkg, Info: pass.TypesInfo}
	for _, file := range pass.Files {
		if generated(file) {
			pkg.Generated = append(pkg.Generated, file)
		} else {
			pkg.Files = append(pkg.Files, file)
		}
	}
	r := newRecognizer(pkg)
	if len(pkg.Generated) == 0 {
		export(pass, r)
		return nil, nil
	}
	for _, l := range Check(pkg, r.handlers()) {
		pass.Reportf(l.Pos, "%s (%s)", l.Message(), l.Suggestion())
	}
	for _, a := range r.foreign {
		reportForeign(pass, a)
	}
	return nil, nil
}

func generated(file *ast.File) bool {
	return len(file.Comments) > 0 && file.Comments[0].Pos() < file.Package && file.Comments[0].List[0].Text == header.Marker
}

// export gives facts about methods that may be handlers of a topology in another
// package.
func export(pass *analysis.Pass, r *recognizer) {
	facts := make(map[*types.Func]*keeps)
	for _, l := range Check(r.pkg, r.unasserted()) {
		at := pass.Fset.Position(l.Pos)
		text := fmt.Sprintf("(%s:%d): %s", filepath.Base(at.Filename), at.Line, l.Message())
		method := l.Handler.method(pass.Pkg)
		if facts[method] == nil {
			facts[method] = new(keeps)
		}
		facts[method].List = append(facts[method].List, kept{l.Index, l.Kind, text})
	}
	for method, fact := range facts {
		pass.ExportObjectFact(method, fact)
	}
}

// unasserted lists the methods that may be handlers, by their names, and may keep a parameter.
func (r *recognizer) unasserted() (list []Handler) {
	for _, name := range r.pkg.Types.Scope().Names() {
		object, ok := r.pkg.Types.Scope().Lookup(name).(*types.TypeName)
		if !ok || object.IsAlias() || NamedOf(object.Type()) == nil {
			continue
		}
		for m := range NamedOf(object.Type()).Methods() {
			if h, ok := updates(m, name); ok {
				list = append(list, h)
			} else if handlerName(m.Name()) {
				list = append(list, r.handler(m, name))
			}
		}
	}
	return Suspects(r.pkg.Files, list)
}

// handlerName reports whether a method with that name may be a handler.
func handlerName(name string) bool {
	rest, receives := strings.CutPrefix(name, "Receive")
	return receives && rest != "" && token.IsExported(rest) || name == "Ping" || name == "Finish"
}

// reportForeign reports, at an assertion, the parameters that a method of another package keeps.
func reportForeign(pass *analysis.Pass, a assertion) {
	var fact keeps
	if !pass.ImportObjectFact(a.method, &fact) {
		return
	}
	for _, k := range fact.List {
		if a.handler.kind(k.Param) == k.Kind {
			pass.Reportf(a.pos, "%s.%s %s", a.handler.Type, a.handler.Name, k.Text)
		}
	}
}
