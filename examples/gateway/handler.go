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
	amountMax  = 1_000_000_000 // of one deposit; sums cannot overflow
)

// newHandler returns an HTTP handler for
//
//	GET  /accounts/NAME           returns the balance of the account
//	POST /accounts/NAME?amount=5  deposits 5 into it
//
// It uses the external sender, which is safe for concurrent use.
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
			http.Error(w, "the name must have at most 64 bytes and the amount must be from 1 to 1000000000", http.StatusBadRequest)
			return
		}
		balance, err := api.AskDeposit(r.Context(), Deposit{account, amount})
		answer(w, balance, err)
	})
	return mux
}

// answer writes the balance, or the error of the request.
func answer(w http.ResponseWriter, balance Balance, err error) {
	switch {
	case err == nil:
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(balance) // fails only if the client has disconnected
	case errors.Is(err, context.DeadlineExceeded):
		// A deposit that was accepted may still be booked.
		http.Error(w, "no answer in time", http.StatusGatewayTimeout)
	case errors.Is(err, topo.ErrFull):
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many requests are waiting", http.StatusServiceUnavailable)
	default: // topo.ErrStopping, topo.ErrClosed; or the client has disconnected
		http.Error(w, "the service is stopping", http.StatusServiceUnavailable)
	}
}
