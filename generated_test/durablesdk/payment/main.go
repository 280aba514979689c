// Command payment is a worker in Go that takes part in a workflow of TypeScript: it
// serves the function payment to order of programs/functions.ts, and calls receipt of
// that file.
//
//	RESONATE_URL=http://127.0.0.1:8001 go run ./generated_test/durablesdk/payment
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/topogen/topogen/runtime/durable"
	"github.com/topogen/topogen/runtime/durable/client"
)

// A Payment is the argument of the function, in JSON.
type Payment struct {
	Item   string `json:"item"`
	Amount int    `json:"amount"`
}

// A Paid is its result.
type Paid struct {
	Amount  int    `json:"amount"`
	Receipt string `json:"receipt"`
}

// RefusedError is an error of the function. TypeScript sees its name and message.
type RefusedError struct{ amount int }

func (e *RefusedError) Error() string { return fmt.Sprintf("the amount is %d", e.amount) }

func pay(ctx durable.Context, m Payment) (Paid, error) {
	if m.Amount <= 0 {
		return Paid{}, &RefusedError{m.Amount}
	}
	charged, err := durable.Step(ctx, "charge", func(context.Context) (int, error) {
		return m.Amount, charge(m)
	})
	if err != nil {
		return Paid{}, err
	}
	// Functions of another group, in another language.
	receipt, err := durable.Start[string](ctx, nil, durable.Call{Func: "receipt", Arg: m.Item, Target: typescript})
	if err != nil {
		return Paid{}, err
	}
	failing, err := durable.Start[string](ctx, nil, durable.Call{Func: "receipt", Arg: "", Target: typescript})
	if err != nil {
		return Paid{}, err
	}
	number, err := receipt.Wait(ctx)
	if err != nil {
		return Paid{}, err
	}
	if _, err := failing.Wait(ctx); err != nil {
		number += fmt.Sprintf(" (without an item: %v)", err)
	}
	return Paid{charged, number}, nil
}

// typescript is the address of the workers that serve receipt.
const typescript = "poll://any@workers"

// charge is the effect of the step: a line in the file EFFECTS. With HANG=charge it
// never returns.
func charge(m Payment) error {
	file, err := os.OpenFile(os.Getenv("EFFECTS"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(file, "charge %d for %s\n", m.Amount, m.Item); err != nil {
		return err
	}
	if os.Getenv("HANG") == "charge" {
		select {}
	}
	return file.Close()
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c, err := client.New(os.Getenv("RESONATE_URL"), client.Options{Token: os.Getenv("RESONATE_TOKEN")})
	if err != nil {
		return err
	}
	w, err := durable.NewWorker(durable.Config{
		Backend:   c,
		Group:     "payments",
		Functions: []durable.Function{durable.Func("payment", pay)},
		Lease:     time.Second,
	})
	if err != nil {
		return err
	}
	return w.Serve(ctx)
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
