package bind

import (
	"go/ast"
	"go/token"
	"go/types"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/spec"
)

// Missing is what a processor still lacks, for scaffolding.
type Missing struct {
	Processor int          // index into Plan.Processors
	Type      string       // its name
	Import    string       // the package that the methods belong into; "" for the generated one
	Declare   bool         // the type itself is not declared
	New       *Constructor // that new: names; nil where it is declared
	Methods   []Method     // that edges ask for
	Update    bool         // it is the update type of a machine, without which there are no ports
}

// Method is a method in canonical form, as the package's own files write it.
type Method struct {
	Name      string
	Signature string   // func (p *Parser) ReceiveRaw(m Raw, out *ParserSender) error
	Edge      int      // what asks for it; -1: nothing
	Reply     string   // the type of the first result; "" for none
	Imports   []string // that the signature mentions
}

// suggestion declares the method in the package pkg: "" is the generated one, where
// scaffolding does it.
func (m Method) suggestion(pkg string) string {
	text := "declare it: " + m.Signature
	if pkg == "" {
		text += ScaffoldHint
	}
	return text
}

// canonical is the form of a handler that we suggest: with the message by value,
// which may be kept, with the sender if there is one, and with an error. A pointer
// would be valid until the handler returns, which a beginner does not know; it is
// for large messages.
func (b *binder) canonical(s *subject, e int, name string) Method {
	edge := &b.plan.Edges[e]
	params := []string{"m " + edge.Type.Format(b.qualifier)}
	if edge.From < 0 {
		params[0] = "tick " + edge.Type.Format(b.qualifier)
	}
	imports := edge.Type.Imports(nil)
	if out := b.outText(s); out != "" {
		params = append(params, out)
	}
	m := Method{Name: name, Edge: e}
	result := "error"
	if edge.Reply != "" {
		m.Reply = edge.ReplyType.Format(b.qualifier)
		result = "(" + m.Reply + ", error)"
		imports = edge.ReplyType.Imports(imports)
	}
	m.Signature = b.signature(s, name, params, result)
	slices.Sort(imports)
	m.Imports = slices.Compact(imports)
	return m
}

// canonicalLifecycle is the same for other methods that the runtime calls.
func (b *binder) canonicalLifecycle(s *subject, l lifecycle) Method {
	var params []string
	m := Method{Name: l.name, Edge: -1}
	switch {
	case l.name == "Init", l.want.context == required:
		params = append(params, contextParam)
		m.Imports = []string{"context"}
	case l.name == processorRestarted:
		params = append(params, "restarted "+l.want.text) // p may be the receiver
	case l.want.text != "":
		params = append(params, "in "+l.want.text)
	}
	if out := b.outText(s); out != "" && l.want.out != never {
		params = append(params, out)
	}
	result := "error"
	if l.want.err == never {
		result = ""
	}
	m.Signature = strings.TrimSpace(b.signature(s, l.name, params, result))
	return m
}

// outText is the parameter that takes the sender. It is an interface where the method
// serves processors with different senders, and in a package that is imported by the
// generated one, which cannot name its senders.
func (b *binder) outText(s *subject) string {
	sharing := b.sharing(s)
	switch {
	case s.sender == nil:
		return ""
	case s.missing.Import == "" && len(sharing) == 1:
		return "out *" + s.Sender()
	}
	var methods []string
	for _, send := range s.Sends {
		if send.Name == "Send"+spec.Exported(send.Message) && common(&send, sharing) {
			method := send.Name + "(" + send.Type.Format(b.qualifier) + ")"
			if send.Error {
				method += " error"
			}
			methods = append(methods, method)
		}
	}
	if len(methods) == 0 && len(sharing) > 1 {
		return ""
	}
	return "out interface{ " + strings.Join(methods, "; ") + " }"
}

// common reports whether all of the processors have a send.
func common(send *plan.Send, processors []*plan.Processor) bool {
	for _, p := range processors {
		if !slices.ContainsFunc(p.Sends, func(other plan.Send) bool {
			return other.Name == send.Name && other.Error == send.Error && other.Type.String() == send.Type.String()
		}) {
			return false
		}
	}
	return true
}

func (b *binder) signature(s *subject, name string, params []string, result string) string {
	typeText := s.missing.Type
	if named, ok := s.t.(*types.Named); ok && named.TypeParams().Len() > 0 {
		var names []string
		for p := range named.TypeParams().TypeParams() {
			names = append(names, p.Obj().Name())
		}
		typeText += "[" + strings.Join(names, ", ") + "]"
	}
	return "func (" + receiver(s.missing.Type) + " *" + typeText + ") " + name + "(" + strings.Join(params, ", ") + ") " + result
}

// receiver is the type's first letter, unless that is the message's name.
func receiver(name string) string {
	r := []rune(name)
	if first := unicode.ToLower(r[0]); first != 'm' {
		return string(first)
	}
	return "r"
}

// qualifier is the name of the package at an import path, as files mostly use it.
func (b *binder) qualifier(importPath string) string {
	if p := b.loader.listed[importPath]; p != nil && p.Name != "" {
		return p.Name
	}
	return path.Base(importPath)
}

// functionText is a function's name, parameters and results, as they are written
// where that can be seen.
func (b *binder) functionText(f *types.Func) string {
	if d := b.declaration(f.Pos()); d != nil {
		at, end := b.fset.PositionFor(d.Type.Params.Pos(), false), b.fset.PositionFor(d.Type.End(), false)
		typeParams := ""
		if l := d.Type.TypeParams; l != nil {
			typeParams = string(b.texts[at.Filename][b.fset.PositionFor(l.Pos(), false).Offset:b.fset.PositionFor(l.End(), false).Offset])
		}
		text := typeParams + string(b.texts[at.Filename][at.Offset:end.Offset])
		return f.Name() + strings.Join(strings.Fields(text), " ")
	}
	return f.Name() + strings.TrimPrefix(b.typeText(f.Signature()), "func")
}

// declaration is the function whose name, parameters or results hold pos.
func (b *binder) declaration(pos token.Pos) *ast.FuncDecl {
	for _, file := range b.root.source.files {
		if pos < file.FileStart || pos > file.FileEnd {
			continue
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Pos() <= pos && pos <= f.Type.End() {
				return f
			}
		}
	}
	return nil
}
