package graph_test

import (
	"fmt"
	"log"

	"github.com/topogen/topogen/generated_test/pipeline"
)

// The generated method Tree returns the graph of a topology, here a -> b -> c. Under a
// Stepper, a test can call a processor and deliver messages one by one.
func Example() {
	top, err := pipeline.New(pipeline.Processors{})
	if err != nil {
		log.Fatal(err)
	}
	g := top.Tree()
	for _, e := range g.OutgoingEdges(pipeline.ProcessorA) {
		fmt.Println(e, "carries", g.Edge(e).Message())
	}

	top.A(0).Left = 1
	top.Stepper(1)
	if err := g.Processor(pipeline.ProcessorA).Ping(); err != nil {
		log.Fatal(err)
	}
	first := g.Edge(pipeline.EdgeABFirst)
	fmt.Println("queued:", first.Len())
	delivered, err := first.Deliver()
	fmt.Println("delivered:", delivered, err, "queued:", first.Len())
	// Output:
	// a -> b: First carries First
	// queued: 1
	// delivered: true <nil> queued: 0
}
