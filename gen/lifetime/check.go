package lifetime

import (
	"cmp"
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"
)

// checker is one look at a package.
type checker struct {
	pkg       *Package
	generated map[string]bool // files, by name
	summaries map[*ssa.Function]*summary
	busy      map[*ssa.Function]bool // being summarized
	recursive map[*ssa.Function]bool // asked for while busy
	work      *work
}

// Check finds what handlers keep. It leaves out handlers that another package
// declares, and gives nothing for a package that it cannot work with.
func Check(pkg *Package, handlers []Handler) (leaks []Leak) {
	defer func() {
		if recover() != nil {
			leaks = nil // better a leak unseen than a build that fails for a fault of ours
		}
	}()
	methods := make([]*types.Func, len(handlers))
	for i := range handlers {
		methods[i] = handlers[i].method(pkg.Types)
	}
	found := slices.DeleteFunc(slices.Clone(methods), func(f *types.Func) bool { return f == nil })
	if len(found) == 0 {
		return nil
	}
	a := newChecker(pkg)
	built := program(pkg, found)
	for i, m := range methods {
		if m != nil {
			if f := built.Prog.FuncValue(m); f != nil && len(f.Blocks) > 0 {
				leaks = append(leaks, a.handler(handlers[i], f)...)
			}
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
	a := &checker{
		pkg:       pkg,
		generated: make(map[string]bool),
		summaries: make(map[*ssa.Function]*summary),
		busy:      make(map[*ssa.Function]bool),
		recursive: make(map[*ssa.Function]bool),
		work:      new(work),
	}
	for file := range pkg.Generated {
		a.generated[pkg.Fset.PositionFor(file.Package, false).Filename] = true
	}
	return a
}

// summaryOf is what a function does with its parameters.
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
	if !ok || !sends(object.Name()) || object.Signature().Recv() == nil {
		return false
	}
	return a.generated[a.pkg.Fset.PositionFor(object.Pos(), false).Filename]
}

// handler is what the summary of a handler's method means for its parameters.
func (a *checker) handler(h Handler, f *ssa.Function) (leaks []Leak) {
	a.work.next()
	s := a.summaryOf(f)
	kinds := h.params()
	add := func(from origin, to sink, l Leak) {
		kind, ok := kinds[from.param-1]
		if !ok || from.inner || !h.outlived(kind, to) {
			return
		}
		l.Handler, l.Kind, l.Param, l.sink = h, kind, f.Params[from.param].Name(), to
		l.at = a.pkg.Fset.PositionFor(to.pos, false) // whatever a //line directive calls it
		leaks = append(leaks, l)
	}
	for _, e := range s.escapes {
		if !e.sent || h.Sender != None && e.via == (origin{param: h.Sender + 1}) {
			add(e.from, e.sink, Leak{Pos: e.pos})
		}
	}
	for _, t := range s.stores {
		if t.to.param == 0 { // the receiver
			add(t.from, t.sink, Leak{Pos: t.pos})
		}
	}
	return leaks
}

// outlived reports whether something of a kind may not go to a sink.
func (h *Handler) outlived(kind Kind, to sink) bool {
	switch to.kind {
	case inGoroutine:
		return kind == Sender || !to.joined
	case inResult, inMessage:
		return kind == Message
	}
	return kind != Sender || !h.Serves
}
