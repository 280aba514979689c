package pipeline

import "unsafe"

// InstanceBytes has the size of an idle instance of each processor without the user's state.
var InstanceBytes = map[string]uintptr{
	"a": unsafe.Sizeof(aInstance{}), "b": unsafe.Sizeof(bInstance{}), "c": unsafe.Sizeof(cInstance{}),
}
