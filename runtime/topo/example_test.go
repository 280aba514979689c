package topo_test

import (
	"errors"
	"fmt"

	"github.com/topogen/topogen/runtime/topo"
)

// Feed sends lines. Generated code makes a FeedSender with a method SendRaw.
type (
	Feed       struct{ lines chan string }
	FeedSender struct{}
)

func (*FeedSender) SendRaw(line string) { fmt.Println("sent", line) }

// Ping sends the next line. It returns Idle if there is none yet, and Done after the
// last one.
func (f *Feed) Ping(out *FeedSender) error {
	select {
	case line, ok := <-f.lines:
		if !ok {
			return topo.Done
		}
		out.SendRaw(line)
		return nil
	default:
		return topo.Idle
	}
}

func Example() {
	f, out := &Feed{make(chan string, 1)}, new(FeedSender)
	fmt.Println(f.Ping(out))
	f.lines <- "a"
	fmt.Println(f.Ping(out))
	close(f.lines)
	fmt.Println(f.Ping(out))
	// Output:
	// topo: idle
	// sent a
	// <nil>
	// topo: done
}

// A test passes a dead letter to the handler of the processor that the topology file
// names under dead_letter.
func ExampleNewDeadLetter() {
	type Order struct{ Number int }
	receive := func(d topo.DeadLetter) {
		// Generated code has a function for each edge, which calls Letter.
		if order, ok := topo.Letter[Order](d, 0); ok {
			fmt.Println("order", order.Number, "failed:", d.Err)
		}
	}
	receive(topo.NewDeadLetter(topo.DeadLetter{Edge: 0, Err: errors.New("no stock")}, Order{7}))
	// Output: order 7 failed: no stock
}
