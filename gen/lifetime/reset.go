package lifetime

import (
	"maps"
	"slices"

	"golang.org/x/tools/go/ssa"
)

// resets has the places that a unit always empties before it returns, each with the block that
// empties it. A value that is stored in such a place does not outlive the call.
type resets map[place]*ssa.BasicBlock

// findResets finds deferred functions that set a field to nil or empty a map, and fields that
// are nil at each return of the unit's function.
func (u *unit) findResets() {
	u.resets = u.resetsAtReturns()
	for _, b := range u.function.Blocks {
		for _, i := range b.Instrs {
			d, ok := i.(*ssa.Defer)
			if !ok {
				continue
			}
			for _, p := range u.emptied(&d.Call, true) {
				u.resets[p] = b
			}
			if f := d.Call.StaticCallee(); f != nil && len(f.Blocks) > 0 && u.within(f) {
				emptied := make(resets)
				u.follow(f.Blocks[0], emptied, true)
				maps.Copy(u.resets, emptied)
			}
		}
	}
}

// resetsAtReturns are the places that are empty at each return.
func (u *unit) resetsAtReturns() resets {
	var common resets
	for _, b := range u.function.Blocks {
		if len(b.Instrs) == 0 || b == u.function.Recover {
			continue
		}
		if _, ok := b.Instrs[len(b.Instrs)-1].(*ssa.Return); !ok {
			continue
		}
		empty := u.emptyAt(b)
		if common == nil {
			common = empty
		}
		maps.DeleteFunc(common, func(p place, _ *ssa.BasicBlock) bool { return empty[p] == nil })
	}
	if common == nil {
		return make(resets)
	}
	return common
}

// emptyAt are the places that are empty at the end of a block on every path to it.
func (u *unit) emptyAt(end *ssa.BasicBlock) resets {
	var dominators []*ssa.BasicBlock // blocks that are on every path to end, in order
	for b := end; b != nil; b = b.Idom() {
		dominators = append(dominators, b)
	}
	slices.Reverse(dominators)
	emptied := make(resets)
	for _, b := range dominators {
		u.follow(b, emptied, false)
	}
	if len(emptied) == 0 {
		return emptied
	}
	for _, b := range u.function.Blocks { // other blocks on a path may fill them again
		if slices.Contains(dominators, b) {
			continue
		}
		for _, i := range b.Instrs {
			if s, ok := i.(*ssa.Store); ok {
				for p := range u.value(s.Addr) {
					if at := emptied[p]; at != nil && at.Dominates(b) {
						delete(emptied, p)
					}
				}
			}
		}
	}
	return emptied
}

// follow adds the places that a block empties, and removes the places that it fills again.
func (u *unit) follow(b *ssa.BasicBlock, emptied resets, deferred bool) {
	for _, i := range b.Instrs {
		switch i := i.(type) {
		case *ssa.Store:
			c, isConst := i.Val.(*ssa.Const)
			for p := range u.value(i.Addr) {
				if isConst && c.IsNil() {
					emptied[p] = b
				} else {
					delete(emptied, p)
				}
			}
		case *ssa.Call:
			for _, p := range u.emptied(&i.Call, deferred) {
				emptied[p] = b
			}
		}
	}
}

// emptied are the maps and slices that the builtins delete and clear empty. A delete that is
// not deferred usually removes an older entry, so it does not count.
func (u *unit) emptied(call *ssa.CallCommon, deferred bool) (found []place) {
	b, ok := call.Value.(*ssa.Builtin)
	if !ok || b.Name() != "clear" && !(deferred && b.Name() == "delete") {
		return nil
	}
	for p := range u.value(call.Args[0]) {
		found = append(found, p)
		if o := p.object; o.external && o.origin.inner { // the field with the map or slice
			found = append(found, place{u.objects.from(origin{param: o.origin.param}), o.origin.field})
		}
	}
	return found
}
