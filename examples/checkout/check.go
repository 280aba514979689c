package main

import (
	"errors"
	"fmt"
	"io"
	"time"
)

// check compares the receipts of all orders with the ledgers of the services, and prints what it
// finds.
func check(out io.Writer, w *world, receipts []Receipt, killed map[string]int, took time.Duration) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	numbers := make(map[string]map[int][]string) // of what was carried out, by service and order
	for service, deeds := range w.done {
		numbers[service] = make(map[int][]string)
		for _, d := range deeds {
			numbers[service][d.order] = append(numbers[service][d.order], d.number)
		}
	}
	completed, wrong := 0, []error(nil)
	for order, r := range receipts {
		if r.Completed {
			completed++
		}
		if err := checkOrder(order, r, numbers); err != nil {
			wrong = append(wrong, err)
		}
	}
	kills := 0
	for _, n := range killed {
		kills += n
	}
	fmt.Fprintf(out, "%d orders in %.1f s: %d completed, %d compensated\n", len(receipts), took.Seconds(), completed, len(receipts)-completed)
	fmt.Fprintf(out, "%d kills: %d of the server, %d of workers\n", kills, killed["server"], kills-killed["server"])
	fmt.Fprintf(out, "%d charges, %d refunds; %d requests were repeated and recognized by their keys, %d requests or answers were lost\n",
		len(w.done["charge"]), len(w.done["refund"]), w.repeated, w.lost)
	if err := errors.Join(wrong...); err != nil {
		return err
	}
	fmt.Fprintln(out, "every order was completed or compensated, and no card was charged twice")
	return nil
}

// checkOrder checks what was carried out for an order.
func checkOrder(order int, r Receipt, numbers map[string]map[int][]string) error {
	count := func(service string) int { return len(numbers[service][order]) }
	charges, refunds := count("charge"), count("refund")
	reserved, released, parcels := count("reserve"), count("release"), count("ship")
	switch {
	case charges > 1:
		return fmt.Errorf("order %d: the card was charged %d times", order, charges)
	case r.Completed && (charges != 1 || refunds != 0 || reserved != 1 || released != 0 || parcels != 1):
		return fmt.Errorf("order %d is completed, with %d charges, %d refunds, %d reservations, %d releases and %d parcels", order, charges, refunds, reserved, released, parcels)
	case !r.Completed && (charges != refunds || reserved != released || parcels != 0):
		return fmt.Errorf("order %d is compensated, with %d charges, %d refunds, %d reservations, %d releases and %d parcels", order, charges, refunds, reserved, released, parcels)
	case !r.Completed && r.Reason == "":
		return fmt.Errorf("order %d has no reason", order)
	}
	return nil
}
