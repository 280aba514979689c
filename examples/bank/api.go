package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/topogen/topogen/runtime/fsm"
)

const bodyBytesMax = 1 << 10 // of a request: two names of 64 bytes, with up to six bytes of JSON for each byte

// transferRequest is the body of POST /transfers. With a session and a sequence, the
// same request can be repeated, at any node, and is carried out once.
type transferRequest struct {
	Session  uint64 `json:"session,string,omitempty"`
	Sequence uint64 `json:"sequence,omitempty"`
	From     string `json:"from"`
	To       string `json:"to"`
	Cents    int64  `json:"cents"`
}

// receipt is the position of a transfer in the log, and the balances after it.
type receipt struct {
	Index uint64 `json:"index"`
	Term  uint64 `json:"term"`
	From  int64  `json:"from"`
	To    int64  `json:"to"`
}

type session struct {
	Session uint64 `json:"session,string"`
}

// balances are the balances of accounts, selected by a prefix of the name.
type balances struct {
	Accounts map[string]int64 `json:"accounts"`
	Total    int64            `json:"total"`
}

// status is the status of a node. The node does not ask other nodes for it.
type status struct {
	Node    string  `json:"node"`
	Role    string  `json:"role"`
	Leader  string  `json:"leader"`
	Term    uint64  `json:"term"`
	Applied uint64  `json:"applied"`
	Total   int64   `json:"total"`
	Audit   Figures `json:"audit"`
}

// failure is the body of every response without a status of 2xx.
type failure struct {
	Error string `json:"error"`
	Known bool   `json:"known"` // this request has changed nothing, and never will
}

type api struct {
	ledger *Ledger
	out    *ApiSender
}

// newHandler serves
//
//	POST /sessions?client=C  opens a session of a client, which has at most four
//	POST /transfers          makes a transfer
//	GET  /balances?prefix=P  returns current balances, from any node
//	GET  /status             returns the status of this node
func newHandler(t *Topology) http.Handler {
	a := &api{t.Ledger(), t.Api()}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /sessions", a.openSession)
	mux.HandleFunc("POST /transfers", a.transfer)
	mux.HandleFunc("GET /balances", a.balances)
	mux.HandleFunc("GET /status", a.status)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
		defer cancel()
		r.Body = http.MaxBytesReader(w, r.Body, bodyBytesMax)
		mux.ServeHTTP(w, r.WithContext(ctx))
	})
}

func (a *api) openSession(w http.ResponseWriter, r *http.Request) {
	client := r.FormValue("client")
	if client == "" || len(client) > nameMax {
		answer(w, http.StatusBadRequest, failure{fmt.Sprintf("the parameter client must be a name of 1 to %d bytes", nameMax), true})
		return
	}
	s, err := a.ledger.OpenSession(r.Context(), client)
	if err != nil {
		refuse(w, err)
		return
	}
	answer(w, http.StatusCreated, session{s.Number()})
}

func (a *api) transfer(w http.ResponseWriter, r *http.Request) {
	var q transferRequest
	in := json.NewDecoder(r.Body)
	in.DisallowUnknownFields()
	if err := in.Decode(&q); err != nil {
		answer(w, http.StatusBadRequest, failure{"the body must be a transfer: " + err.Error(), true})
		return
	}
	t := Transfer{q.From, q.To, q.Cents}
	err := t.check()
	if err == nil && (q.Session == 0) != (q.Sequence == 0) {
		err = errors.New("session and sequence must be set together")
	}
	if err != nil {
		answer(w, http.StatusBadRequest, failure{err.Error(), true})
		return
	}
	var booked fsm.Result[Balances]
	if q.Session != 0 {
		booked, err = a.ledger.ProposeAs(r.Context(), q.Session, q.Sequence, q.Sequence, t)
	} else {
		booked, err = a.ledger.ProposeResult(r.Context(), t)
	}
	_ = a.out.SendEntry(r.Context(), Entry{t, outcome(err)}) // while the node stops, audit misses some requests
	if err != nil {
		refuse(w, err)
		return
	}
	answer(w, http.StatusOK, receipt{booked.Index, booked.Term, booked.Value.From, booked.Value.To})
}

func (a *api) balances(w http.ResponseWriter, r *http.Request) {
	prefix := r.FormValue("prefix")
	b := balances{Accounts: make(map[string]int64)}
	err := a.ledger.Read(r.Context(), func(s *Accounts) {
		for name, cents := range s.Cents {
			if strings.HasPrefix(name, prefix) {
				b.Accounts[name] = cents
				b.Total += cents
			}
		}
	})
	if err != nil {
		answer(w, http.StatusServiceUnavailable, failure{err.Error(), true})
		return
	}
	answer(w, http.StatusOK, b)
}

func (a *api) status(w http.ResponseWriter, r *http.Request) {
	figures, err := a.out.AskInquiry(r.Context(), Inquiry{})
	if err != nil {
		answer(w, http.StatusServiceUnavailable, failure{err.Error(), true})
		return
	}
	s := a.ledger.Status()
	b := status{Node: s.Node, Role: s.Role, Leader: s.Leader, Term: s.Term, Applied: s.Applied, Audit: figures}
	_ = a.ledger.Stale(func(s *Accounts) { b.Total = s.Total() }) // fails only while the node stops
	answer(w, http.StatusOK, b)
}

// refuse responds to a failed proposal, and says whether the outcome is known. Errors
// that are not from the runtime come from the ledger.
func refuse(w http.ResponseWriter, err error) {
	code := http.StatusConflict
	switch {
	case errors.Is(err, fsm.ErrSessionExpired), errors.Is(err, fsm.ErrStale), errors.Is(err, fsm.ErrWindow):
		code = http.StatusGone
	case !fsm.OutcomeKnown(err):
		code = http.StatusGatewayTimeout
	case errors.Is(err, fsm.ErrNotLeader), errors.Is(err, fsm.ErrTooMany), errors.Is(err, fsm.ErrNotRunning), errors.Is(err, fsm.ErrStopped):
		code = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", "1")
	}
	answer(w, code, failure{err.Error(), fsm.OutcomeKnown(err)})
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // fails only if the client has disconnected
}
