package lifetime

import (
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// joins reports whether the unit waits for goroutines. Any wait counts, for any
// goroutine, except for a wait within a goroutine that the unit starts.
func (u *unit) joins() bool {
	spawned := u.spawned()
	for _, f := range u.functions {
		if within(f, spawned) {
			continue
		}
		for _, b := range f.Blocks {
			for _, i := range b.Instrs {
				if u.joinsAt(i) {
					return true
				}
			}
		}
	}
	return false
}

// spawned are the closures that go statements call.
func (u *unit) spawned() map[*ssa.Function]bool {
	spawned := make(map[*ssa.Function]bool)
	for _, f := range u.functions {
		for _, b := range f.Blocks {
			for _, i := range b.Instrs {
				if g, ok := i.(*ssa.Go); ok && g.Call.StaticCallee() != nil {
					spawned[g.Call.StaticCallee()] = true
				}
			}
		}
	}
	return spawned
}

// within reports whether f, or a function around it, is among list.
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
	case *ssa.Call:
		return waits(&i.Call) || u.joinsFor(&i.Call)
	case *ssa.Defer:
		return waits(&i.Call) || u.joinsFor(&i.Call)
	}
	return false
}

// own reports whether a channel was made in the call, by the unit or by a function
// that it calls.
func (u *unit) own(channel ssa.Value) bool {
	for p := range u.value(channel) {
		if p.object.channel {
			return true
		}
	}
	return false
}

// joinsFor reports whether a called function waits for goroutines of its caller:
// an argument must be something to wait for them with.
func (u *unit) joinsFor(call *ssa.CallCommon) bool {
	f := u.callee(call)
	if f == nil || u.within(f) || !u.summaryOf(f).joins {
		return false
	}
	for _, a := range call.Args {
		t := a.Type()
		if p, ok := t.Underlying().(*types.Pointer); ok {
			t = p.Elem()
		}
		if _, ok := t.Underlying().(*types.Chan); ok {
			return true
		}
		if named, ok := types.Unalias(t).(*types.Named); ok && strings.Contains(named.Obj().Name(), "Group") {
			return true
		}
	}
	return false
}
