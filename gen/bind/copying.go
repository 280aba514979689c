package bind

import (
	"go/token"
	"go/types"
	"sync"

	"github.com/topogen/topogen/spec"
	"github.com/topogen/topogen/spec/finding"
)

// locker is sync.Locker.
var locker = sync.OnceValue(func() *types.Interface {
	var methods []*types.Func
	for _, name := range []string{"Lock", "Unlock"} {
		methods = append(methods, types.NewFunc(token.NoPos, nil, name, types.NewSignatureType(nil, nil, nil, nil, nil, false)))
	}
	return types.NewInterfaceType(methods, nil).Complete()
})

// copied reports something of type t, which is copied on its way, if t has a lock.
func (b *binder) copied(what, pointer string, t types.Type, at spec.Text) bool {
	if t == nil {
		return false
	}
	held := b.lock(t)
	if held != "" {
		b.at(finding.NotCopyable, at, "hold the lock by a pointer, or "+pointer, "%s has a lock (%s), and it is copied on its way", what, held)
	}
	return held != ""
}

// lock says where a value of t has a lock, which must not be copied: "sync.Mutex",
// "field mu: sync.Mutex"; "" if it has none. The rule is that of go vet.
func (b *binder) lock(t types.Type) string {
	field, held := lockIn(t, make(map[types.Type]bool))
	switch {
	case held == nil:
		return ""
	case field == "":
		return b.typeText(held)
	}
	return "field " + field + ": " + b.typeText(held)
}

// noCopy is how the standard library names a field that has the methods of a lock only
// for go vet to see: what has the field must not be copied.
const noCopy = "noCopy"

func lockIn(t types.Type, seen map[types.Type]bool) (field string, lock types.Type) {
	for {
		array, ok := t.Underlying().(*types.Array)
		if !ok {
			break
		}
		t = array.Elem()
	}
	if seen[t] {
		return "", nil
	}
	seen[t] = true
	u, ok := t.Underlying().(*types.Struct)
	if !ok {
		return "", nil
	}
	locks := types.Implements(types.NewPointer(t), locker()) && !types.Implements(t, locker())
	if named, ok := types.Unalias(t).(*types.Named); ok && locks && named.NumMethods() > 0 {
		return "", t
	}
	for f := range u.Fields() {
		path, lock := lockIn(f.Type(), seen)
		if lock == nil {
			continue
		}
		if named, ok := lock.(*types.Named); ok && named.Obj().Name() == noCopy {
			return "", t
		}
		if path == "" {
			return f.Name(), lock
		}
		return f.Name() + "." + path, lock
	}
	return "", nil
}
