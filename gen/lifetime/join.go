package lifetime

import (
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// joins reports whether the unit waits for goroutines. Every wait counts, for any goroutine,
// except for a wait within a goroutine that the unit starts.
func (u *unit) joins() bool {
	spawned := make(map[*ssa.Function]bool)
	for i := range u.instructions() {
		if g, ok := i.(*ssa.Go); ok {
			spawned[g.Call.StaticCallee()] = true
		}
	}
	for i := range u.instructions() {
		if !within(i.Parent(), spawned) && u.joinsAt(i) {
			return true
		}
	}
	return false
}

// within reports whether list contains f or a function that encloses f.
func within(f *ssa.Function, list map[*ssa.Function]bool) bool {
	for ; f != nil; f = f.Parent() {
		if list[f] {
			return true
		}
	}
	return false
}

func (u *unit) joinsAt(i ssa.Instruction) bool {
	switch i := i.(type) {
	case *ssa.UnOp:
		return i.Op == token.ARROW && u.own(i.X)
	case *ssa.Select:
		for _, s := range i.States {
			if s.Dir == types.RecvOnly && u.own(s.Chan) {
				return true
			}
		}
	case *ssa.Call, *ssa.Defer:
		call := i.(ssa.CallInstruction).Common()
		return waits(call) || u.joinsFor(call)
	}
	return false
}

// own reports whether a channel was made during the call, by the unit or by a function that
// the unit calls.
func (u *unit) own(channel ssa.Value) bool {
	for p := range u.value(channel) {
		if p.object.channel {
			return true
		}
	}
	return false
}

// joinsFor reports whether a called function waits for goroutines of its caller. It can wait
// for them only through an argument such as a channel or a sync.WaitGroup.
func (u *unit) joinsFor(call *ssa.CallCommon) bool {
	f := call.StaticCallee()
	if f == nil {
		return false
	}
	if f = u.body(f); f == nil || u.within(f) || !u.summaryOf(f).joins {
		return false
	}
	return slices.ContainsFunc(call.Args, func(a ssa.Value) bool {
		t := a.Type()
		if p, ok := t.Underlying().(*types.Pointer); ok {
			t = p.Elem()
		}
		_, channel := t.Underlying().(*types.Chan)
		n := NamedOf(t)
		return channel || n != nil && strings.Contains(n.Obj().Name(), "Group")
	})
}
