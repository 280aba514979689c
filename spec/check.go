package spec

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/topogen/topogen/spec/finding"
)

// check checks what a schema cannot express. It skips values that already have a finding. The
// warnings need the complete graph, so they are made only if there are no errors.
func (b *builder) check() {
	b.checkNames()
	b.checkTypes()
	b.checkEdges()
	b.checkFailures()
	b.checkMachines()
	b.checkCluster()
	b.checkDurable()
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
			b.found.addText(finding.Type, p.Type, "the type of a processor must be able to have methods, got "+quoted(p.Type.Value), "name a type that is declared in Go")
		}
		if p.New.Pointer != "" && !b.found.exact[p.New.Pointer] {
			b.checkNew(p.New)
		}
	}
}

// checkType reports a malformed type expression at the position of the mistake.
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
		suggestion = "write the import path from the path of the module on"
	}
	b.found.add(finding.Type, at, expr.Pointer, err.Error(), suggestion)
	return nil
}

func (b *builder) checkNew(name Text) {
	switch {
	case strings.ContainsAny(name.Value, "./"):
		b.found.addText(finding.Name, name, "new must be the name of a function without a package, got "+quoted(name.Value), "remove the package: the function is in the package of the type")
	case utf8.RuneCountInString(name.Value) > nameMax:
		b.found.addText(finding.Name, name, fmt.Sprintf("new must have at most %d characters, got more", nameMax), "shorten it")
	case !isIdentifier(name.Value) || name.Value == "init":
		b.found.addText(finding.Name, name, "new must be the name of a function, got "+quoted(name.Value), "write a name such as NewFeed")
	}
}

// notExternal holds the keys that an external processor cannot have, with the reasons.
var notExternal = map[string]string{
	"type":      "its code is outside the topology",
	"new":       "the topology does not construct it",
	"with":      "the topology does not construct it",
	"instances": "any goroutine may send for it",
	"blocking":  "it handles no messages",
	"restart":   "it cannot fail",
	"health":    "it cannot fail",
	"isolation": "it does not run in the pool",
	"memory":    "it does not run in the pool",
	"on_error":  "it handles no messages",

	"placement":  "code on every node may send for it",
	"checkpoint": "it has no state",
}

// checkOptions reports options of a processor that exclude each other.
func (b *builder) checkOptions(p *Processor, v *Value) {
	b.checkKind(p, v)
	for _, f := range v.Fields {
		name := f.Key.Value
		reason, own := notExternal[name]
		switch {
		case own && p.External && p.Machine == nil:
			b.found.addText(finding.ExternalHas, f.Key, fmt.Sprintf("the external processor %s must not have %s: %s", quoted(p.Name.Value), name, reason), "remove it")
		case name == "with" && p.New.Pointer == "" && !b.found.broken[p.Pointer]:
			b.found.addText(finding.NoEffect, f.Key, "with must go with new, the function that receives it", fmt.Sprintf("write %q", "new: New"+p.Ident))
		}
	}
}
