package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/topogen/topogen/runtime/topo"
)

const (
	accountMax = 64            // bytes of an account's name
	amountMax  = 1_000_000_000 // of one deposit; keeps sums far from overflowing
)

// newHandler serves
//
//	GET  /accounts/NAME           what is in the account
//	POST /accounts/NAME?amount=5  puts 5 into it
//
// through the external sender, which any number of goroutines may use.
func newHandler(api *ApiSender) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /accounts/{account}", func(w http.ResponseWriter, r *http.Request) {
		account := r.PathValue("account")
		balance, err := api.AskLookup(r.Context(), Lookup{account})
		if err == nil && !balance.Known {
			http.Error(w, "no such account", http.StatusNotFound)
			return
		}
		answer(w, balance, err)
	})
	mux.HandleFunc("POST /accounts/{account}", func(w http.ResponseWriter, r *http.Request) {
		account := r.PathValue("account")
		amount, err := strconv.ParseInt(r.URL.Query().Get("amount"), 10, 64)
		if err != nil || amount < 1 || amount > amountMax || len(account) > accountMax {
			http.Error(w, "want a name of at most 64 bytes and an amount from 1 to 1000000000", http.StatusBadRequest)
			return
		}
		balance, err := api.AskDeposit(r.Context(), Deposit{account, amount})
		answer(w, balance, err)
	})
	return mux
}

// answer writes the balance, or what became of the request instead.
func answer(w http.ResponseWriter, balance Balance, err error) {
	switch {
	case err == nil:
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(balance) // fails only where the client has gone
	case errors.Is(err, context.DeadlineExceeded):
		// A deposit that was accepted may still be booked.
		http.Error(w, "no answer in time", http.StatusGatewayTimeout)
	case errors.Is(err, topo.ErrFull):
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many wait already", http.StatusServiceUnavailable)
	default: // topo.ErrStopping, topo.ErrClosed; or the client has gone and reads nothing
		http.Error(w, "the service is stopping", http.StatusServiceUnavailable)
	}
}
