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

// Analyzer reports what handlers keep, for "go vet -vettool". It knows handlers
// by the assertions in generated files. In a package without such files a method
// with the name of a handler gets a fact, which the package that asserts the
// handler reads.
var Analyzer = &analysis.Analyzer{
	Name:      "topogenlifetime",
	Doc:       "report handlers that keep a message pointer, a sender or a context after they return\n\nThese are valid during the call only: what is read or sent through them later is wrong or lost.",
	URL:       "https://pkg.go.dev/github.com/topogen/topogen/gen/lifetime",
	Run:       run,
	FactTypes: []analysis.Fact{new(keeps)},
}

// keeps is the fact of a method: where its parameters go. Only the package that
// asserts the method knows whether it is a handler, and what each parameter is.
type keeps struct{ List []kept }

type kept struct {
	Param  int // without the receiver
	Kind   sinkKind
	Joined bool
	Where  string // file:line

	Message, Sender, Context string // the text of the finding, if the parameter is that
}

func (*keeps) AFact() {}

func (k *keeps) String() string { return fmt.Sprintf("keeps %d parameters", len(k.List)) }

func run(pass *analysis.Pass) (any, error) {
	pkg := &Package{Fset: pass.Fset, Types: pass.Pkg, Info: pass.TypesInfo, Files: pass.Files, Generated: make(map[*ast.File]bool)}
	for _, file := range pass.Files {
		if generated(file) {
			pkg.Generated[file] = true
		}
	}
	own := make([]*ast.File, 0, len(pass.Files))
	for _, file := range pass.Files {
		if !pkg.Generated[file] {
			own = append(own, file)
		}
	}
	if len(pkg.Generated) == 0 {
		export(pass, pkg)
		return nil, nil
	}
	r := newRecognizer(pkg)
	handlers := r.handlers()
	for _, l := range Check(pkg, Suspects(own, handlers)) {
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
func export(pass *analysis.Pass, pkg *Package) {
	var handlers []Handler
	var methods []*types.Func
	for _, file := range pkg.Files {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil || f.Body == nil || len(f.Recv.List) != 1 || !handlerName(f.Name.Name) {
				continue
			}
			object, ok := pass.TypesInfo.Defs[f.Name].(*types.Func)
			if !ok {
				continue
			}
			h := guess(object.Signature(), TypeName(f.Recv.List[0].Type), f.Name.Name)
			handlers, methods = append(handlers, h), append(methods, object)
		}
	}
	if len(handlers) == 0 {
		return
	}
	suspects := make(map[string]bool)
	for _, h := range Suspects(pkg.Files, handlers) {
		suspects[h.Type+"."+h.Name] = true
	}
	for i, h := range handlers {
		if !suspects[h.Type+"."+h.Name] {
			continue
		}
		if list := keptBy(pkg, h); len(list) > 0 {
			pass.ExportObjectFact(methods[i], &keeps{list})
		}
	}
}

// keptBy lists the parameters that a method keeps.
func keptBy(pkg *Package, h Handler) (list []kept) {
	for _, l := range Check(pkg, []Handler{h}) {
		k := kept{Param: [...]int{Message: h.Message, Sender: h.Sender, Context: h.Context}[l.Kind], Joined: l.sink.joined, Kind: l.sink.kind}
		at := pkg.Fset.Position(l.Pos)
		k.Where = fmt.Sprintf("%s:%d", filepath.Base(at.Filename), at.Line)
		for kind, text := range map[Kind]*string{Message: &k.Message, Sender: &k.Sender, Context: &k.Context} {
			l.Kind = kind
			*text = l.Message()
		}
		list = append(list, k)
	}
	return list
}

// guess gives each parameter of a method the only kind that its type allows.
func guess(sig *types.Signature, typ, name string) Handler {
	h := Handler{Type: typ, Name: name, Message: None, Sender: None, Context: None}
	for i := range sig.Params().Len() {
		t := sig.Params().At(i).Type()
		switch {
		case isContext(t) && i == 0:
			h.Context = i
		case isPointer(t) && h.Message == None:
			h.Message = i
		case types.IsInterface(t) && i == sig.Params().Len()-1 && !isContext(t):
			h.Sender = i
		}
	}
	return h
}

func isPointer(t types.Type) bool {
	_, ok := types.Unalias(t).(*types.Pointer)
	return ok
}

// handlerName reports whether a method of that name may be a handler.
func handlerName(name string) bool {
	rest, receives := strings.CutPrefix(name, "Receive")
	return receives && rest != "" && token.IsExported(rest) || name == "Ping" || name == "Finish"
}

// reportForeign reports, at an assertion, what a method of another package keeps.
func reportForeign(pass *analysis.Pass, a assertion) {
	var fact keeps
	if !pass.ImportObjectFact(a.method, &fact) {
		return
	}
	kinds := a.handler.params()
	for _, k := range fact.List {
		kind, ok := kinds[k.Param]
		if !ok || !a.handler.outlived(kind, sink{kind: k.Kind, joined: k.Joined}) {
			continue
		}
		text := [...]string{Message: k.Message, Sender: k.Sender, Context: k.Context}[kind]
		pass.Reportf(a.pos, "%s.%s (%s): %s", a.handler.Type, a.handler.Name, k.Where, text)
	}
}
