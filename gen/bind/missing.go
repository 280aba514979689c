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

// Missing lists the declarations that a processor still lacks, for scaffolding.
type Missing struct {
	Processor int          // index into Plan.Processors
	Type      string       // name of the type
	Import    string       // the package in which the methods belong; "" for the generated package
	Declare   bool         // the type itself is missing
	New       *Constructor // the function under new:; nil if it is declared
	Methods   []Method     // methods that edges need
	Update    bool         // the type is the update of a state machine; ports need it
}

// Method is a method in canonical form, as the package's own files write it.
type Method struct {
	Name      string
	Signature string   // func (p *Parser) ReceiveRaw(m Raw, out *ParserSender) error
	Edge      int      // the edge that needs it; -1: none
	Reply     string   // the type of the first result; "" for none
	Imports   []string // imports that the signature needs
}

// suggestion is the text of a finding that suggests to declare the method in the package
// pkg. "" is the generated package, for which --scaffold can do it.
func (m Method) suggestion(pkg string) string {
	text := "write " + m.Signature
	if pkg == "" {
		text += ScaffoldHint
	}
	return text
}

// durableParam is the first parameter of the handler of a durable edge.
const durableParam = "ctx durable.Context"

// canonical is the suggested form of a handler. It takes the message by value, takes the
// sender if there is one, and returns an error. The message is a value because a handler may
// keep a value, but not a pointer, and a beginner does not know this.
func (b *binder) canonical(s *subject, e int, name string) Method {
	edge := &b.plan.Edges[e]
	params := []string{"m " + edge.Type.Format(b.qualifier)}
	if edge.From < 0 {
		params[0] = "tick " + edge.Type.Format(b.qualifier)
	}
	imports := edge.Type.Imports(nil)
	if edge.Durable != nil {
		params = append([]string{durableParam}, params...)
		imports = append(imports, plan.DurableRuntime)
	}
	if out := b.outText(s); out != "" {
		params = append(params, out)
		if strings.Contains(out, "(context.Context, ") { // a method for a durable edge
			imports = append(imports, "context")
		}
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

// canonicalLifecycle is the suggested form of other methods that the runtime calls.
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

// outText is the parameter that takes the sender. It is an interface if processors with
// different senders share the method, and in a package that the generated package imports,
// because that package cannot name the senders.
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
			if send.Start != "" {
				methods = append(methods, b.durableMethod(&send))
				continue
			}
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

// durableMethod is the method of a sender for a durable edge, as an interface declares it.
func (b *binder) durableMethod(send *plan.Send) string {
	params := "(context.Context, " + send.Type.Format(b.qualifier) + ") "
	if send.Ask != "" {
		return send.Ask + params + "(" + b.plan.Edges[send.Edges[0]].ReplyType.Format(b.qualifier) + ", error)"
	}
	return send.Name + params + "error"
}

// common reports whether all of the processors have the same send.
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

// receiver is the receiver name: the type's first letter, unless the message has that name.
func receiver(name string) string {
	r := []rune(name)
	if first := unicode.ToLower(r[0]); first != 'm' {
		return string(first)
	}
	return "r"
}

// qualifier is the usual name of the package at an import path.
func (b *binder) qualifier(importPath string) string {
	if p := b.loader.listed[importPath]; p != nil && p.Name != "" {
		return p.Name
	}
	return path.Base(importPath)
}

// functionText is a function's name, parameters and results, as in the source if it is
// available.
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

// declaration is the function whose name, parameters or results contain pos.
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
