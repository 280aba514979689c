package lifetime

import (
	"go/ast"
	"go/token"
	"strings"
)

// Prune leaves of a package what Check needs for some handlers: their methods and
// what these mention, at any depth, by name. Of generated senders the methods are
// left that are mentioned, and no fields. Type-checking that again, with types
// recorded, takes a part of what recording the types of a large package would
// add. The files share their syntax with the given ones. They may have imports
// that are not used, which is a soft error. Rarely what is left has type errors,
// where a method is needed that is not mentioned.
func Prune(files []*ast.File, generated map[*ast.File]bool, handlers []Handler) (pruned []*ast.File, prunedGenerated map[*ast.File]bool) {
	p := &pruning{called: make(map[string]bool), named: make(map[string]bool), types: make(map[string]bool)}
	for _, file := range files {
		p.add(file, generated[file])
	}
	for _, h := range handlers {
		p.named[h.Type] = true
		p.called[h.Name] = true
	}
	for p.changed = true; p.changed; {
		p.changed = false
		for _, d := range p.declarations {
			p.look(d)
		}
	}
	prunedGenerated = make(map[*ast.File]bool)
	for _, file := range files {
		if c := p.file(file); c != nil {
			pruned = append(pruned, c)
			prunedGenerated[c] = generated[file]
		}
	}
	return pruned, prunedGenerated
}

// pruning is what is known of the names of a package so far.
type pruning struct {
	declarations []*declaration
	by           map[ast.Node]*declaration
	called       map[string]bool // mentioned in a body that is kept
	named        map[string]bool // mentioned elsewhere
	types        map[string]bool // types that are kept
	changed      bool
}

// declaration is a function, or a part of a declaration that can be left out.
type declaration struct {
	names    []string
	function *ast.FuncDecl // else nil
	receiver string        // the type of a method; "": none
	ours     bool          // generated: what it does is of no interest
	node     ast.Node
	kept     bool
	body     bool // kept too
}

func (p *pruning) add(file *ast.File, generated bool) {
	if p.by == nil {
		p.by = make(map[ast.Node]*declaration)
	}
	note := func(d *declaration) {
		p.declarations = append(p.declarations, d)
		p.by[d.node] = d
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			f := &declaration{names: []string{d.Name.Name}, function: d, node: d, ours: generated}
			if d.Recv != nil && len(d.Recv.List) == 1 {
				f.receiver = typeName(d.Recv.List[0].Type)
			}
			note(f)
		case *ast.GenDecl:
			if d.Tok == token.CONST { // each may repeat the one before
				whole := &declaration{node: d}
				for _, s := range d.Specs {
					whole.names = append(whole.names, specNames(s)...)
				}
				note(whole)
			} else if d.Tok != token.IMPORT {
				for _, s := range d.Specs {
					note(&declaration{names: specNames(s), node: s, ours: generated})
				}
			}
		}
	}
}

func specNames(s ast.Spec) (names []string) {
	switch s := s.(type) {
	case *ast.TypeSpec:
		return []string{s.Name.Name}
	case *ast.ValueSpec:
		for _, id := range s.Names {
			names = append(names, id.Name)
		}
	}
	return names
}

// look keeps a declaration if it is mentioned.
func (p *pruning) look(d *declaration) {
	called, named := false, false
	for _, n := range d.names {
		called = called || p.called[n]
		named = named || p.named[n]
	}
	if d.receiver != "" {
		known := p.types[d.receiver]
		called = called && known
		named = known && (named || !d.ours) // for the sake of interfaces that are declared elsewhere
	}
	if !d.kept && (called || named) {
		d.kept, p.changed = true, true
		if d.function == nil {
			if opaque(d) == nil {
				p.mention(d.node, p.named)
			}
			if t, ok := d.node.(*ast.TypeSpec); ok {
				p.types[t.Name.Name] = true
			}
		} else {
			if d.function.Recv != nil {
				p.mention(d.function.Recv, p.named)
			}
			p.mention(d.function.Type, p.named)
		}
	}
	if d.function != nil && called && !d.body && !d.ours && d.function.Body != nil {
		d.body, p.changed = true, true
		p.mention(d.function.Body, p.called)
	}
}

func (p *pruning) mention(n ast.Node, names map[string]bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && id.Name != "_" {
			names[id.Name] = true
		}
		return true
	})
}

// opaque is the type of a generated sender without its fields; nil for all else.
func opaque(d *declaration) ast.Spec {
	t, ok := d.node.(*ast.TypeSpec)
	if !ok || !d.ours || !strings.HasSuffix(t.Name.Name, "Sender") {
		return nil
	}
	if s, ok := t.Type.(*ast.StructType); ok {
		bare := *t
		bare.Type = &ast.StructType{Struct: s.Struct, Fields: &ast.FieldList{Opening: s.Fields.Opening, Closing: s.Fields.Closing}}
		return &bare
	}
	return nil
}

// file is what is kept of a file; nil: nothing.
func (p *pruning) file(file *ast.File) *ast.File {
	c := *file
	c.Decls = nil
	kept := false
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			f := p.by[d]
			if !f.kept {
				continue
			}
			if kept = true; !f.body {
				bare := *d
				bare.Body = nil
				d = &bare
			}
			c.Decls = append(c.Decls, d)
		case *ast.GenDecl:
			if d.Tok == token.IMPORT {
				c.Decls = append(c.Decls, d)
				continue
			}
			if whole := p.by[d]; whole != nil {
				if whole.kept {
					kept = true
					c.Decls = append(c.Decls, d)
				}
				continue
			}
			some := *d
			some.Specs = nil
			for _, s := range d.Specs {
				if !p.by[s].kept {
					continue
				}
				if bare := opaque(p.by[s]); bare != nil {
					s = bare
				}
				some.Specs = append(some.Specs, s)
			}
			if len(some.Specs) > 0 {
				kept = true
				c.Decls = append(c.Decls, &some)
			}
		}
	}
	if !kept {
		return nil
	}
	return &c
}
