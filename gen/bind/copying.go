package bind

import (
	"go/token"
	"go/types"
	"strings"
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

// copied reports a value that the runtime copies if its type t contains a lock.
func (b *binder) copied(what, pointer string, t types.Type, at spec.Text) bool {
	if t == nil {
		return false
	}
	held := b.lock(t)
	if held != "" {
		b.at(finding.NotCopyable, at, "hold the lock by a pointer, or "+pointer, "%s is copied, so it must not contain a lock (%s)", what, held)
	}
	return held != ""
}

// lock says where a value of t contains a lock, which must not be copied: "sync.Mutex",
// "field mu: sync.Mutex"; "" if it contains none. The rule is the rule of go vet.
func (b *binder) lock(t types.Type) string {
	path, held := search(t, isLock, make(map[types.Type]bool))
	switch {
	case held == nil:
		return ""
	case len(path) == 0:
		return b.typeText(held)
	}
	return "field " + strings.Join(path, ".") + ": " + b.typeText(held)
}

// noCopy is the standard library's name for a field whose methods Lock and Unlock only tell
// go vet that the struct must not be copied.
const noCopy = "noCopy"

func isLock(t types.Type) (is, within bool) {
	u, ok := t.Underlying().(*types.Struct)
	if !ok {
		return false, true
	}
	named, ok := t.(*types.Named)
	if ok && named.NumMethods() > 0 && types.Implements(types.NewPointer(t), locker()) && !types.Implements(t, locker()) {
		return true, false
	}
	for f := range u.Fields() {
		if named, ok := f.Type().(*types.Named); ok && named.Obj().Name() == noCopy && named != t {
			if is, _ := isLock(named); is {
				return true, false
			}
		}
	}
	return false, true
}
