package pool_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/topogen/topogen/generated_test/pipeline"
	"github.com/topogen/topogen/runtime/pool"
)

// Package pipeline is generated from a topology file with the edges a -> b: First and
// b -> c: Second. A sends the numbers below Left, and C adds them up.
func Example() {
	top, err := pipeline.New(pipeline.Processors{}, pool.Workers(2), pool.DrainTimeout(time.Minute))
	if err != nil {
		log.Fatal(err)
	}
	top.A(0).Left = 1000
	if err := top.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
	fmt.Println("sum:", top.C(0).Sum)
	for _, e := range top.Snapshot().Edges {
		fmt.Printf("%s -> %s: %d sent, %d received\n", e.From, e.To, e.Sent, e.Received)
	}
	// Output:
	// sum: 499500
	// a -> b: 1000 sent, 1000 received
	// b -> c: 1000 sent, 1000 received
}

// A test runs a topology under a Stepper: in one goroutine, with a simulated clock and
// in an order that only depends on the seed.
func ExampleStepper() {
	top, err := pipeline.New(pipeline.Processors{})
	if err != nil {
		log.Fatal(err)
	}
	top.A(0).Left = 3
	s := top.Stepper(1)
	s.Trace(func(step uint64, processor string, instance int) {
		if step == 1 {
			fmt.Println("the first step runs", processor)
		}
	})
	for s.Step() { // a test would check its invariants here
	}
	fmt.Println("sum:", top.C(0).Sum, "error:", s.Err())
	// Output:
	// the first step runs a
	// sum: 3 error: <nil>
}

// printer is an Observer that prints when a processor has finished.
type printer struct{}

func (printer) Moved(processor string, instance, from, to int) {}
func (printer) Finished(processor string)                      { fmt.Println(processor, "has finished") }

func ExampleObserver() {
	top, err := pipeline.New(pipeline.Processors{}, pool.Workers(1), pool.Observe(printer{}))
	if err != nil {
		log.Fatal(err)
	}
	if err := top.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output:
	// a has finished
	// b has finished
	// c has finished
}
