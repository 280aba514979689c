package lifetime

import (
	"go/ast"
	"go/token"
	"go/types"
)

// Kind is what a handler keeps.
type Kind int

const (
	Message Kind = iota // a pointer to a message
	Sender
	Context
)

// None is the index of a parameter that a handler does not have.
const None = -1

// Handler is a method that generated code calls. Indices count the parameters
// without the receiver; None stands for a parameter that is not there, or whose
// lifetime does not end with the call.
type Handler struct {
	Type, Name string // the type is declared in the package, or is an alias there
	Message    int    // pointer to a message
	Sender     int
	Context    int
	Serves     bool // the call lasts as long as the topology runs: only goroutines end its sender's use
}

// Package is type-checked Go without type errors.
type Package struct {
	Fset  *token.FileSet
	Types *types.Package
	Info  *types.Info // Types, Defs, Uses, Implicits, Instances, Scopes, Selections, FileVersions
	Files []*ast.File
	// Generated are those of Files whose functions are not looked into: senders
	// are known by what they do.
	Generated map[*ast.File]bool
}

// NewInfo returns an Info that a type checker fills with what Check needs.
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

// method finds the method of the package that h names; nil where another package
// declares it.
func (h *Handler) method(pkg *types.Package) *types.Func {
	object, ok := pkg.Scope().Lookup(h.Type).(*types.TypeName)
	if !ok {
		return nil
	}
	found, _, _ := types.LookupFieldOrMethod(object.Type(), true, pkg, h.Name)
	f, _ := found.(*types.Func)
	if f == nil || f.Pkg() != pkg {
		return nil
	}
	return f.Origin()
}

// params are the parameters of h that are followed, in order: the kind by the
// index.
func (h *Handler) params() map[int]Kind {
	params := make(map[int]Kind)
	for kind, index := range [...]int{Message: h.Message, Sender: h.Sender, Context: h.Context} {
		if index != None {
			params[index] = Kind(kind)
		}
	}
	return params
}
