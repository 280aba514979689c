package lifetime

import (
	"cmp"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"
)

// checker is one check of a package.
type checker struct {
	pkg       *Package
	summaries map[*ssa.Function]*summary
	busy      map[*ssa.Function]bool // functions that are being summarized
	recursive map[*ssa.Function]bool // functions that were called while they were in busy
	work      *work
}

// Check finds parameters that handlers keep. It omits handlers that another package
// declares, and returns nothing for a package that it cannot analyze.
func Check(pkg *Package, handlers []Handler) (leaks []Leak) {
	defer func() {
		if recover() != nil {
			leaks = nil // a missed leak is better than a build that fails because of a bug here
		}
	}()
	var methods []*types.Func
	var declared []Handler // the handlers for methods
	for _, h := range handlers {
		if m := h.method(pkg.Types); m != nil {
			methods, declared = append(methods, m), append(declared, h)
		}
	}
	if len(methods) == 0 {
		return nil
	}
	c := newChecker(pkg)
	built := program(pkg, methods)
	for i, m := range methods {
		if f := built.Prog.FuncValue(m); f != nil && len(f.Blocks) > 0 {
			leaks = append(leaks, c.handler(declared[i], f)...)
		}
	}
	slices.SortFunc(leaks, compareLeaks)
	return slices.CompactFunc(leaks, func(x, y Leak) bool { return x.Pos == y.Pos && x.Kind == y.Kind })
}

func compareLeaks(x, y Leak) int {
	return cmp.Or(cmp.Compare(x.Pos, y.Pos), cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.sink.kind, y.sink.kind),
		cmp.Compare(x.sink.name, y.sink.name), cmp.Compare(x.sink.pos, y.sink.pos))
}

func newChecker(pkg *Package) *checker {
	return &checker{
		pkg:       pkg,
		summaries: make(map[*ssa.Function]*summary),
		busy:      make(map[*ssa.Function]bool),
		recursive: make(map[*ssa.Function]bool),
		work:      new(work),
	}
}

// summaryOf is the summary of a function.
func (a *checker) summaryOf(f *ssa.Function) *summary {
	if s := a.summaries[f]; s != nil {
		a.recursive[f] = a.recursive[f] || a.busy[f]
		return s
	}
	a.summaries[f] = new(summary)
	if len(a.busy) >= callDepthMax || len(a.summaries) > summariesMax {
		return a.summaries[f]
	}
	a.busy[f] = true
	defer delete(a.busy, f)
	for range recursionsMax {
		u := newUnit(a, f)
		u.run()
		a.summaries[f] = u.summary
		if !a.recursive[f] {
			break
		}
	}
	return a.summaries[f]
}

// sender reports whether f is a method of a generated sender that sends.
func (a *checker) sender(f *ssa.Function) bool {
	object, ok := f.Object().(*types.Func)
	return ok && sends(object.Name()) && object.Signature().Recv() != nil && a.pkg.inGenerated(object.Pos())
}

// handler finds the leaks of a handler in the summary of its method.
func (a *checker) handler(h Handler, f *ssa.Function) (leaks []Leak) {
	a.work.next()
	s := a.summaryOf(f)
	kind := func(o origin) Kind {
		if o.inner {
			return Other
		}
		return h.kind(o.param - 1)
	}
	add := func(from origin, to sink, pos token.Pos) {
		if k := kind(from); k != Other && h.outlived(k, to) {
			at := a.pkg.Fset.PositionFor(to.pos, false) // ignores //line directives
			leaks = append(leaks, Leak{Handler: h, Kind: k, Param: f.Params[from.param].Name(), Index: from.param - 1, Pos: pos, sink: to, at: at})
		}
	}
	for _, e := range s.escapes {
		if !e.sent || kind(e.via) == Sender {
			add(e.from, e.sink, e.pos)
		}
	}
	for _, t := range s.stores {
		if t.to.param-1 == h.keeper() {
			add(t.from, t.sink, t.pos)
		}
	}
	return leaks
}

// outlived reports whether a parameter of this kind must not reach a sink, because the sink
// outlives the parameter.
func (h *Handler) outlived(kind Kind, to sink) bool {
	switch to.kind {
	case inGoroutine:
		return kind == Sender || !to.joined
	case inResult, inMessage:
		return kind == Message
	}
	return kind != Sender || h.Name != Serve
}
