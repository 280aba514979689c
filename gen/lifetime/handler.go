package lifetime

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// Kind is the kind of a handler's parameter.
type Kind int

const (
	Other   Kind = iota // a parameter that may be kept
	Message             // a pointer to a message
	Sender
	Context
	Update // a pointer to an update of a state machine
)

// Handler is a method that generated code calls.
type Handler struct {
	Type, Name string // the type is declared in the package, or is an alias there
	Receiver   Kind   // Update for a method of an update, whose first parameter is the state; otherwise Other
	Params     []Kind // kinds of the parameters, without the receiver
}

// Serve is the method whose call lasts as long as the topology runs. Its context may be kept,
// and its sender must only not be used in other goroutines.
const Serve = "Serve"

// Package is type-checked Go without type errors.
type Package struct {
	Fset      *token.FileSet
	Types     *types.Package
	Info      *types.Info // Types, Defs, Uses, Implicits, Instances, Scopes, Selections, FileVersions
	Files     []*ast.File // the user's files
	Generated []*ast.File // generated files; their functions are not analyzed, because senders are known
}

// NewInfo returns an Info with the maps that Check needs, for a type checker.
func NewInfo() *types.Info {
	return &types.Info{
		Types:        make(map[ast.Expr]types.TypeAndValue),
		Defs:         make(map[*ast.Ident]types.Object),
		Uses:         make(map[*ast.Ident]types.Object),
		Implicits:    make(map[ast.Node]types.Object),
		Instances:    make(map[*ast.Ident]types.Instance),
		Scopes:       make(map[ast.Node]*types.Scope),
		Selections:   make(map[*ast.SelectorExpr]*types.Selection),
		FileVersions: make(map[*ast.File]string),
	}
}

// inGenerated reports whether pos is in a generated file.
func (p *Package) inGenerated(pos token.Pos) bool {
	return slices.ContainsFunc(p.Generated, func(f *ast.File) bool { return f.FileStart <= pos && pos < f.FileEnd })
}

// method finds the method that h names. It is nil if another package declares the method, or
// if the receiver and all parameters may be kept.
func (h *Handler) method(pkg *types.Package) *types.Func {
	object, ok := pkg.Scope().Lookup(h.Type).(*types.TypeName)
	if !ok || !h.Borrows() {
		return nil
	}
	found, _, _ := types.LookupFieldOrMethod(object.Type(), true, pkg, h.Name)
	f, _ := found.(*types.Func)
	if f == nil || f.Pkg() != pkg {
		return nil
	}
	return f.Origin()
}

// Borrows reports whether the receiver or at least one parameter is valid only during the call.
func (h *Handler) Borrows() bool {
	return h.Receiver != Other || slices.ContainsFunc(h.Params, func(k Kind) bool { return k != Other })
}

// kind is the kind of a parameter. The receiver has the index -1.
func (h *Handler) kind(index int) Kind {
	switch {
	case index < 0:
		return h.Receiver
	case index < len(h.Params):
		return h.Params[index]
	}
	return Other
}

// keeper is the index of the parameter whose memory outlives the call: the receiver, or the
// state of an update.
func (h *Handler) keeper() int {
	if h.Receiver == Update {
		return 0
	}
	return -1
}
