package core_test

import (
	"fmt"

	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/store"
)

// A promise with a target gets a task. The message for its worker is sent after the commit.
func Example() {
	c, err := core.New(core.Config{})
	if err != nil {
		panic(err)
	}
	create := protocol.PromiseCreate{
		ID: "order-17", TimeoutAt: 60_000,
		Tags: map[string]string{protocol.TagTarget: "poll://any@orders"},
	}
	var result protocol.Result
	var effects []core.Effect
	err = store.NewMemory().Update(func(tx store.Tx) error {
		result, effects = c.Step(tx, create, core.Instant{Wall: 1000, Run: 1000})
		return result.Fault
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(result.Status, result.Promise.State)
	for _, e := range effects {
		fmt.Println(e.Address, e.Message.Execute.ID, e.Message.Execute.Version)
	}
	// Output:
	// 200 pending
	// poll://any@orders order-17 0
}
