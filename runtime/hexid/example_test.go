package hexid_test

import (
	"fmt"

	"github.com/topogen/topogen/runtime/hexid"
)

func ExampleGenerator() {
	var ids hexid.Generator
	first := ids.Next()
	fmt.Println(first, ids.Current())

	for range 0xfffe {
		ids.Next()
	}
	last := ids.Current()
	fmt.Println(last, ids.Next(), last < ids.Current())
	// Output:
	// 0001 0001
	// ffff ffff-0000 true
}
