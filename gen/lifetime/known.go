package lifetime

import (
	"go/types"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// keeping says how a known function of another package keeps its arguments.
type keeping int

const (
	keepsNothing keeping = iota
	starts               // it calls them in another goroutine
	holds                // it stores them in its receiver or first argument
)

// keepers are the functions of other packages that keep arguments, by their full names. All
// other functions are assumed to keep nothing.
var keepers = map[string]keeping{
	"time.AfterFunc":    starts,
	"context.AfterFunc": starts,

	"(*sync.WaitGroup).Go":                      starts,
	"(*golang.org/x/sync/errgroup.Group).Go":    starts,
	"(*golang.org/x/sync/errgroup.Group).TryGo": starts,

	"(*sync.Map).Store":          holds,
	"(*sync.Map).LoadOrStore":    holds,
	"(*sync.Map).Swap":           holds,
	"(*sync.Map).CompareAndSwap": holds,
	"(*sync.Pool).Put":           holds,

	"(*sync/atomic.Value).Store":               holds,
	"(*sync/atomic.Value).Swap":                holds,
	"(*sync/atomic.Value).CompareAndSwap":      holds,
	"(*sync/atomic.Pointer[T]).Store":          holds,
	"(*sync/atomic.Pointer[T]).Swap":           holds,
	"(*sync/atomic.Pointer[T]).CompareAndSwap": holds,

	"(*container/list.List).PushBack":     holds,
	"(*container/list.List).PushFront":    holds,
	"(*container/list.List).InsertAfter":  holds,
	"(*container/list.List).InsertBefore": holds,
	"container/heap.Push":                 holds,
}

// keeperNamed reports whether one of keepers has that name, in any package.
func keeperNamed(name string) bool {
	for full := range keepers {
		if strings.HasSuffix(full, "."+name) {
			return true
		}
	}
	return false
}

// resultsHoldArguments reports whether results of the package's functions may refer to their
// arguments.
func resultsHoldArguments(path string) bool {
	return path == "slices" || path == "maps" || path == "iter"
}

// waits reports whether a call may wait for goroutines. It looks only at the name, so that it
// also finds such methods of the user's types.
func waits(call *ssa.CallCommon) bool {
	name := strings.ToLower(calledName(call))
	return strings.Contains(name, "wait") || strings.Contains(name, "join") && !strings.HasPrefix(name, "joinpath")
}

// calledName is the name of the called function or method; "" if it is unknown.
func calledName(call *ssa.CallCommon) string {
	if call.IsInvoke() {
		return call.Method.Name()
	}
	if f := call.StaticCallee(); f != nil {
		return f.Name()
	}
	return ""
}

// sends reports whether a method with that name sends its arguments.
func sends(name string) bool {
	return strings.HasPrefix(name, "Send") || strings.HasPrefix(name, "Ask")
}

// canHold reports whether a value of the type may contain a pointer that came from a parameter.
func canHold(t types.Type) bool { return holdsPointer(t, typeDepthMax) }

const typeDepthMax = 20 // nesting of structs and arrays; deeper types count as containing a pointer

func holdsPointer(t types.Type, depth int) bool {
	if depth == 0 {
		return true
	}
	switch t := t.Underlying().(type) {
	case *types.Basic:
		return t.Kind() == types.UnsafePointer
	case *types.Struct:
		for f := range t.Fields() {
			if holdsPointer(f.Type(), depth-1) {
				return true
			}
		}
		return false
	case *types.Array:
		return holdsPointer(t.Elem(), depth-1)
	}
	return true
}

// composite reports whether a value of the type contains its parts directly, as structs and
// arrays do.
func composite(t types.Type) bool {
	switch t.Underlying().(type) {
	case *types.Struct, *types.Array:
		return true
	}
	return false
}

func isContext(t types.Type) bool {
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == "context" && n.Obj().Name() == "Context"
}

// NamedOf is the named type that t is or points to; nil if there is none.
func NamedOf(t types.Type) *types.Named {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	n, _ := types.Unalias(t).(*types.Named)
	return n
}
