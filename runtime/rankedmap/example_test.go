package rankedmap_test

import (
	"fmt"
	"time"

	"github.com/topogen/topogen/runtime/rankedmap"
)

// Each task goes to the worker with the least work.
func Example() {
	var load rankedmap.Map[string, time.Duration]
	load.Update("ann", 3*time.Second)
	load.Update("bob", time.Second)
	load.Update("eve", time.Second)

	for range 3 {
		worker, busy, _ := load.Lowest()
		fmt.Println("to", worker)
		load.Update(worker, busy+2*time.Second)
	}
	for worker, busy := range load.All() {
		fmt.Println(worker, busy)
	}
	// Output:
	// to bob
	// to eve
	// to ann
	// bob 3s
	// eve 3s
	// ann 5s
}

// A loop may erase keys.
func ExampleMap_All() {
	var seen rankedmap.Map[string, int]
	seen.Update("a", 3)
	seen.Update("b", 1)
	seen.Update("c", 2)
	for key, times := range seen.All() {
		if times < 3 {
			seen.Erase(key)
		}
	}
	fmt.Println(seen.Len(), "is left")
	// Output: 1 is left
}
