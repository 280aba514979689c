package lifetime

import (
	"go/token"

	"golang.org/x/tools/go/ssa"
)

// A variable that a closure uses is memory, and the analysis ignores the order of stores in memory. But
// after c := *m; m = &c, a closure that is made later cannot read the first value of m. So the first
// value of such a variable is not stored in its memory. The loads that may read the value get it directly.

// initial is the first value of a variable. Another value replaces it before a closure or another
// pointer refers to the variable.
type initial struct {
	first *ssa.Store
	next  *ssa.Store // replaces the value of first
}

// findInitial finds the first value of a variable and the store that replaces it.
func (u *unit) findInitial(v *ssa.Alloc) {
	var first *ssa.Store
	for _, r := range *v.Referrers() { // in the order of the instructions of a block
		s, ok := r.(*ssa.Store)
		switch {
		case !ok || !direct(s, v):
		case first == nil:
			if s.Block() != v.Block() || !canHold(s.Val.Type()) { // in another block it may run again for the same variable
				return
			}
			first = s
		case u.precedesReferences(s, v):
			u.initials[v] = initial{first, s}
			return
		}
	}
}

// precedesReferences reports whether a store runs before all instructions that refer to v and do more
// than load or store its value.
func (u *unit) precedesReferences(s *ssa.Store, v *ssa.Alloc) bool {
	for _, r := range *v.Referrers() {
		if !u.work.step() || !direct(r, v) && !u.precedes(s, r) {
			return false
		}
	}
	return true
}

// direct reports whether an instruction that refers to v only loads or stores its value.
func direct(i ssa.Instruction, v *ssa.Alloc) bool {
	switch i := i.(type) {
	case *ssa.UnOp:
		return i.Op == token.MUL
	case *ssa.Store:
		return i.Val != v
	}
	return false
}

// precedes reports whether x is on every path to y, for two instructions of the same function.
func (u *unit) precedes(x, y ssa.Instruction) bool {
	if x.Block() == y.Block() {
		return u.positions[x] < u.positions[y]
	}
	return x.Block().Dominates(y.Block())
}

// replaced reports whether a store only sets the first value of a variable in initials.
func (u *unit) replaced(s *ssa.Store) bool {
	v, ok := s.Addr.(*ssa.Alloc)
	return ok && u.initials[v].first == s
}

// loadInitial adds the first value of a variable to a load that may read it.
func (u *unit) loadInitial(load *ssa.UnOp) {
	v, ok := load.X.(*ssa.Alloc)
	if !ok {
		return
	}
	if in, ok := u.initials[v]; ok && !u.precedes(in.next, load) {
		u.set(load, u.value(in.first.Val))
	}
}
