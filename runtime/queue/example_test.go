package queue_test

import (
	"fmt"

	"github.com/topogen/topogen/runtime/queue"
)

func ExampleRing() {
	r := queue.NewRing[string](2)
	for _, v := range []string{"a", "b", "c"} {
		fmt.Println("push", v, r.TryPush(v))
	}
	for v, ok := r.TryPop(); ok; v, ok = r.TryPop() {
		fmt.Println("pop", v)
	}
	// Output:
	// push a true
	// push b true
	// push c false
	// pop a
	// pop b
}

func ExampleLockFree() {
	var q queue.LockFree[int] // the zero value is ready to use
	for i := range 3 {
		q.Push(i)
	}
	fmt.Println("length:", q.Len())
	for v, ok := q.Pop(); ok; v, ok = q.Pop() {
		fmt.Println(v)
	}
	// Output:
	// length: 3
	// 0
	// 1
	// 2
}
