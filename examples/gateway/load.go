package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// loadReport is the result of the built-in clients.
type loadReport struct {
	took      time.Duration
	latencies []time.Duration // of all requests that were answered
	statuses  map[int]int     // number of answers with each status
	deposits  int             // answered with 200
}

// runLoad starts clients that send requests to url, one after the other, for d or until
// ctx ends: a deposit into one of a thousand accounts, then a lookup of it. Requests in
// progress are completed at the end.
func runLoad(ctx context.Context, url string, clients int, d time.Duration) (loadReport, error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()

	start := time.Now()
	reports, errs := make([]loadReport, clients), make([]error, clients)
	var running sync.WaitGroup
	for i := range clients {
		running.Go(func() { errs[i] = reports[i].run(ctx, client, url) })
	}
	running.Wait()

	total := loadReport{took: time.Since(start), statuses: make(map[int]int)}
	for i, r := range reports {
		if errs[i] != nil {
			return total, errs[i]
		}
		total.latencies = append(total.latencies, r.latencies...)
		for status, n := range r.statuses {
			total.statuses[status] += n
		}
		total.deposits += r.deposits
	}
	slices.Sort(total.latencies)
	return total, nil
}

// run runs one client.
func (r *loadReport) run(ctx context.Context, client *http.Client, url string) error {
	r.statuses = make(map[int]int)
	for ctx.Err() == nil {
		account := fmt.Sprintf("%s/accounts/a%d", url, rand.IntN(1000))
		status, err := r.do(client, http.MethodPost, account+"?amount=1")
		if err != nil {
			return err
		}
		if status == http.StatusOK {
			r.deposits++
		}
		if _, err := r.do(client, http.MethodGet, account); err != nil {
			return err
		}
	}
	return nil
}

func (r *loadReport) do(client *http.Client, method, url string) (status int, err error) {
	request, err := http.NewRequest(method, url, nil)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil { // so that the connection can be reused
		return 0, err
	}
	r.latencies = append(r.latencies, time.Since(start))
	r.statuses[response.StatusCode]++
	return response.StatusCode, nil
}

func (r loadReport) String() string {
	var b strings.Builder
	n := len(r.latencies)
	fmt.Fprintf(&b, "%d requests in %v: %.0f requests/s\n", n, r.took.Round(time.Millisecond), float64(n)/r.took.Seconds())
	for _, status := range slices.Sorted(maps.Keys(r.statuses)) {
		fmt.Fprintf(&b, "status %d: %d\n", status, r.statuses[status])
	}
	if n > 0 {
		at := func(share float64) time.Duration {
			return r.latencies[int(share*float64(n-1))].Round(time.Microsecond)
		}
		fmt.Fprintf(&b, "latency: half within %v, 90 %% within %v, 99 %% within %v, all within %v\n", at(0.5), at(0.9), at(0.99), at(1))
	}
	return b.String()
}
