package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
)

// world has the services outside: a warehouse, a bank and a carrier. They run in the process
// that is not killed, and each has a ledger with idempotency keys. They are unreliable: some
// requests are not carried out, and some are carried out and their answer is lost.
type world struct {
	listener net.Listener

	mu       sync.Mutex
	random   *rand.Rand
	ledger   map[string]answer // by idempotency key
	done     map[string][]deed // what was carried out, by service
	repeated int               // requests whose key was in the ledger
	lost     int               // requests and answers that were lost
}

// deed is a request that was carried out.
type deed struct {
	order   int
	number  string
	subject string
}

// lossPercent is how many of a hundred requests are lost, and how many answers.
const lossPercent = 8

// openWorld starts the services.
func openWorld(seed uint64) (*world, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &world{listener: l, random: rand.New(rand.NewPCG(seed, 0)), ledger: make(map[string]answer), done: make(map[string][]deed)}
	go func() { _ = http.Serve(l, w) }() // ends with the process
	return w, nil
}

func (w *world) url() string { return "http://" + w.listener.Addr().String() }

// ServeHTTP carries out one request.
func (w *world) ServeHTTP(to http.ResponseWriter, r *http.Request) {
	var in request
	if err := json.NewDecoder(http.MaxBytesReader(to, r.Body, 1<<16)).Decode(&in); err != nil || in.Key == "" {
		http.Error(to, "a request needs a key", http.StatusBadRequest)
		return
	}
	a, ok := w.carryOut(strings.TrimPrefix(r.URL.Path, "/"), in)
	if !ok {
		http.Error(to, "try again", http.StatusServiceUnavailable)
		return
	}
	_ = json.NewEncoder(to).Encode(a) // the worker may have been killed
}

// carryOut carries out a request, unless its key is in the ledger. It returns false if the
// request or its answer is lost.
func (w *world) carryOut(service string, in request) (a answer, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.random.IntN(100) < lossPercent {
		w.lost++
		return a, false
	}
	a, known := w.ledger[in.Key]
	if known {
		w.repeated++
	} else {
		if a.Refused = refusal(service, in.Order); a.Refused == "" {
			a.Number = fmt.Sprintf("%s-%d", service, len(w.done[service])+1)
			w.done[service] = append(w.done[service], deed{in.Order, a.Number, in.Subject})
		}
		w.ledger[in.Key] = a
	}
	if w.random.IntN(100) < lossPercent {
		w.lost++
		return a, false
	}
	return a, true
}

// refusal is the reason why a service refuses an order for good, or "".
func refusal(service string, order int) string {
	switch {
	case service == "reserve" && order%11 == 3:
		return "the item is sold out"
	case service == "charge" && order%7 == 5:
		return "the card is declined"
	case service == "ship" && order%5 == 4:
		return "no carrier goes there"
	}
	return ""
}
