package spec

import (
	"errors"
	"fmt"
	"strings"

	"github.com/topogen/topogen/spec/finding"
)

// check is the meaning of a topology: what a schema cannot say. What has a
// finding already is left alone. The warnings look at the whole graph, which
// there is only without errors.
func (b *builder) check() {
	b.checkNames()
	b.checkTypes()
	b.checkEdges()
	b.checkFailures()
	b.checkMachines()
	if len(b.found.broken) == 0 {
		b.checkGraph()
	}
}

func (b *builder) checkTypes() {
	for _, m := range b.topology.Messages {
		b.checkType(m.Type)
	}
	for _, p := range b.topology.Processors {
		if t := b.checkType(p.Type); t != nil && (t.Kind != NamedType || t.Predeclared()) {
			b.found.addText(finding.Type, p.Type, quoted(p.Type.Value)+" can have no methods, and a processor needs some", "name a type that is declared in Go")
		}
		if p.New.Pointer != "" && !b.found.exact[p.New.Pointer] {
			b.checkNew(p.New)
		}
	}
}

// checkType reports a malformed type expression, where it is wrong.
func (b *builder) checkType(expr Text) *TypeExpr {
	if expr.Pointer == "" || b.found.exact[expr.Pointer] {
		return nil
	}
	t, err := ParseType(expr.Value)
	if err == nil {
		return t
	}
	at, suggestion := expr.At, ""
	var wrong *TypeError
	if errors.As(err, &wrong) {
		at = expr.within(min(wrong.Start, len(expr.Value)), min(wrong.End, len(expr.Value)))
		if at.Line == at.EndLine && at.Column == at.EndColumn {
			at = expr.At
		}
	}
	if strings.HasPrefix(expr.Value, "./") || strings.HasPrefix(expr.Value, "../") {
		suggestion = "write it from the module's name on"
	}
	b.found.add(finding.Type, at, expr.Pointer, err.Error(), suggestion)
	return nil
}

func (b *builder) checkNew(name Text) {
	switch {
	case strings.ContainsAny(name.Value, "./"):
		b.found.addText(finding.Name, name, "new is the name of a function alone: it is looked up in the package of the type", "leave the package out")
	case !isIdentifier(name.Value) || name.Value == "init" || len(name.Value) > nameMax:
		b.found.addText(finding.Name, name, quoted(name.Value)+" cannot be the name of a function", "")
	}
}

// notExternal lists the keys that an external processor cannot have, with reasons.
var notExternal = map[string]string{
	"type":      "it stands for code outside of the topology",
	"new":       "nothing of it is constructed",
	"with":      "nothing of it is constructed",
	"instances": "any goroutine may send for it",
	"blocking":  "it handles no messages",
	"restart":   "nothing of it can fail",
	"health":    "nothing of it can fail",
	"isolation": "nothing of it runs here",
	"memory":    "nothing of it runs here",
	"on_error":  "it handles no messages",
}

// checkOptions reports options that a processor cannot have together.
func (b *builder) checkOptions(p *Processor, v *Value) {
	b.checkKind(p, v)
	for _, f := range v.Fields {
		name := f.Key.Value
		reason, own := notExternal[name]
		switch {
		case own && p.External && p.Machine == nil:
			b.found.addText(finding.ExternalHas, f.Key, fmt.Sprintf("the external processor %s has no %s: %s", quoted(p.Name.Value), name, reason), "leave it out")
		case name == "with" && p.New.Pointer == "" && !b.found.broken[p.Pointer]:
			b.found.addText(finding.NoEffect, f.Key, "with is given to the new function, and this processor has none", "name it: new: New"+p.Ident)
		}
	}
}
