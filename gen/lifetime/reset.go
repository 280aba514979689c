package lifetime

import "golang.org/x/tools/go/ssa"

// resets are the places that a unit always empties before it returns. A value
// that is stored there does not outlive the call.
type resets map[place]bool

func (r resets) has(p place) bool { return r[p] }

// findResets looks for deferred functions, and for the ends of the unit's
// function, that set a field to nil or delete from a map.
func (u *unit) findResets() {
	u.resets = make(resets)
	deferred := make(map[*ssa.Function]bool)
	for _, b := range u.function.Blocks {
		for _, i := range b.Instrs {
			d, ok := i.(*ssa.Defer)
			if !ok {
				continue
			}
			if f := d.Call.StaticCallee(); f != nil {
				deferred[f] = true
			}
			u.emptied(&d.Call, true)
		}
	}
	for _, f := range u.functions {
		for _, b := range f.Blocks {
			if deferred[f] && b == f.Blocks[0] || f == u.function && endsAll(b) {
				u.resetIn(b, deferred[f])
			}
		}
	}
}

// endsAll reports whether a block returns and nothing else of its function does.
func endsAll(b *ssa.BasicBlock) bool {
	for _, other := range b.Parent().Blocks {
		if len(other.Instrs) == 0 {
			continue
		}
		if _, returns := other.Instrs[len(other.Instrs)-1].(*ssa.Return); returns != (other == b) {
			return false
		}
	}
	return true
}

// resetIn notes what a block empties and does not fill again.
func (u *unit) resetIn(b *ssa.BasicBlock, deferred bool) {
	for _, i := range b.Instrs {
		switch i := i.(type) {
		case *ssa.Store:
			c, isConst := i.Val.(*ssa.Const)
			for p := range u.value(i.Addr) {
				if isConst && c.IsNil() {
					u.resets[p] = true
				} else {
					delete(u.resets, p)
				}
			}
		case *ssa.Call:
			u.emptied(&i.Call, deferred)
		}
	}
}

// emptied notes the maps that the builtins delete and clear empty. A delete that
// is not deferred mostly evicts an older entry, so it does not count.
func (u *unit) emptied(call *ssa.CallCommon, deferred bool) {
	b, ok := call.Value.(*ssa.Builtin)
	if !ok || b.Name() != "clear" && !(deferred && b.Name() == "delete") {
		return
	}
	for p := range u.value(call.Args[0]) {
		u.resets[p] = true
	}
}
