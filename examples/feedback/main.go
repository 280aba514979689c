// Command feedback ranks the pages of an invented web by the visits of surfers, who
// follow links at random until they are bored. See README.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

//go:generate go run ../../cmd/topogen build

func main() {
	// After an interrupt no more surfers start. Surfers that have started continue.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt ends the program at once
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "feedback:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	topology, err := New(Processors{})
	if err != nil {
		return err
	}
	if err := topology.Run(ctx); err != nil {
		return err
	}
	ranking, surfers := topology.Ranking(0), topology.Start(0).sent
	visits := 0
	for _, times := range ranking.visits {
		visits += times
	}
	fmt.Println("page  visits")
	for _, v := range ranking.best(5) {
		fmt.Printf("%4d %7d\n", v.Page, v.Times)
	}
	fmt.Printf("%d surfers made %d visits and were bored\n", surfers, visits)
	if ranking.visits != direct(surfers) {
		return errors.New("a direct computation gives other visits")
	}
	fmt.Println("a direct computation gives the same result")
	return nil
}
