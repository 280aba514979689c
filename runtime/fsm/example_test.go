package fsm_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/topogen/topogen/runtime/fsm"
)

// shelf is a state: the number of each thing.
type shelf map[string]int

// take is an update that takes things from the shelf.
type take struct {
	thing string
	n     int
}

var errNotEnough = errors.New("not enough left")

// Update returns how many are left.
func (t *take) Update(s *shelf) (int, error) {
	if (*s)[t.thing] < t.n {
		return 0, errNotEnough
	}
	(*s)[t.thing] -= t.n
	return (*s)[t.thing], nil
}

func (t *take) Revert(s *shelf) error {
	(*s)[t.thing] += t.n
	return nil
}

// Two updates are applied. Only the first one is committed, so Revert undoes the second
// one.
func ExampleMachine() {
	m := fsm.NewMachine(fsm.Definition[shelf, take, int]{Update: (*take).Update, Revert: (*take).Revert})
	*m.State() = shelf{"apples": 5}
	m.Add(take{"apples", 1})
	m.Commit()
	m.Add(take{"apples", 3})
	m.Apply(10)
	fmt.Println(*m.State(), len(m.Upcoming()), "upcoming")
	m.Revert()
	fmt.Println(*m.State(), len(m.Upcoming()), "upcoming")
	// Output:
	// map[apples:1] 1 upcoming
	// map[apples:4] 0 upcoming
}

// The first entry opens a session. The second entry contains the same update twice, as
// if a client had repeated it because the first answer was lost. The update is applied
// once.
func ExampleReplicated() {
	r := fsm.NewReplicated(bankDefinition, fsm.Options{})
	var b fsm.Batch
	var client uint64
	b.Open("test", 42)
	r.Apply(1, 1, b.Bytes(), func(_, _ uint64, a fsm.Applied) { client = a.Client })

	update, _ := transferCodec.Append(nil, &transfer{from: 1, to: 2, cents: 300})
	b.Reset(time.Now().UnixNano())
	b.Update(client, 1, 1, update)
	b.Update(client, 1, 1, update)
	r.Apply(2, 1, b.Bytes(), func(_, sequence uint64, a fsm.Applied) {
		fmt.Println("sequence", sequence, "applied at entry", a.Index, "with", a.Err)
	})
	r.View(func(s *bank) { fmt.Println(s.cents[2]-s.cents[1], "more") })
	// Output:
	// sequence 1 applied at entry 2 with <nil>
	// sequence 1 applied at entry 2 with <nil>
	// 600 more
}
