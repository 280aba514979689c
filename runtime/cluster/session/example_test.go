package session_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/topogen/topogen/runtime/cluster/session"
)

// Two sessions whose frames arrive at once. A program passes frames to a transport, and
// the time of its clock.
func Example() {
	a, _ := session.New(session.Config{Topology: "bank", Plan: "hash", Node: "n1", Peer: "n2", Boot: 17, Rand: rand.New(rand.NewPCG(1, 1))})
	b, _ := session.New(session.Config{Topology: "bank", Plan: "hash", Node: "n2", Peer: "n1", Boot: 18, Rand: rand.New(rand.NewPCG(2, 2))})

	const account7, account8 = session.ControlLanes + 7, session.ControlLanes + 8
	_ = a.Send(account7, []byte("add 5"))
	_ = a.Send(account7, []byte("add 6"))
	_ = a.Send(account8, []byte("close"))

	now := time.Duration(0)
	for range 3 {
		pass(now, a, b)
		pass(now, b, a)
	}
	fmt.Println("not acknowledged:", a.Stats().Pending)
	now, _ = b.Next() // the acknowledgement waits for data that it can travel with
	pass(now, b, a)
	fmt.Println("not acknowledged:", a.Stats().Pending)
	// Output:
	// lane 23: add 5
	// lane 23: add 6
	// lane 24: close
	// not acknowledged: 3
	// not acknowledged: 0
}

func pass(now time.Duration, from, to *session.Session) {
	for f := from.Frame(now); f != nil; f = from.Frame(now) {
		messages, err := to.Receive(now, f, nil)
		if err != nil {
			fmt.Println(err)
		}
		for _, m := range messages {
			fmt.Printf("lane %d: %s\n", m.Lane, m.Message)
		}
		to.Events()
	}
}
