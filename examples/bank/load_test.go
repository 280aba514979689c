package main

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// wrongBank implements the bank's protocol with a map of balances, and sometimes makes
// a mistake.
type wrongBank struct {
	wrong string

	mu       sync.Mutex
	accounts Accounts
	old      map[string]int64 // earlier balances
	asked    int
	sessions uint64
}

func (b *wrongBank) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked++
	now := b.asked > 100 && b.asked%20 == 0
	switch r.URL.Path {
	case "/sessions":
		b.sessions++
		answer(w, 201, session{b.sessions})
	case "/balances":
		answer(w, 200, b.read(r.FormValue("prefix"), now))
	case "/transfers":
		b.transfer(w, r, now)
	}
}

func (b *wrongBank) read(prefix string, now bool) balances {
	from := b.accounts.Cents
	if now && b.wrong == "a stale read" {
		from = b.old
	}
	if b.asked%10 == 0 {
		b.old = maps.Clone(b.accounts.Cents)
	}
	own := make(map[string]int64)
	for name, c := range from {
		if strings.HasPrefix(name, prefix) {
			own[name] = c
		}
	}
	return balances{Accounts: own}
}

func (b *wrongBank) transfer(w http.ResponseWriter, r *http.Request, now bool) {
	var q transferRequest
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		panic(err)
	}
	t := Transfer{q.From, q.To, q.Cents}
	if now && b.wrong == "an acknowledgement too much" {
		answer(w, 200, receipt{})
		return
	}
	if _, err := t.Update(&b.accounts); err != nil {
		refuse(w, err)
		return
	}
	switch {
	case now && b.wrong == "applied twice":
		_, _ = t.Update(&b.accounts)
	case now && b.wrong == "applied and refused":
		refuse(w, ErrFunds)
		return
	case now && b.wrong == "applied in silence":
		b.accounts.add(t.To, -t.Cents)
		b.accounts.add(accountOf(0, 1), t.Cents)
	}
	answer(w, 200, receipt{Index: 1, Term: 1})
}

// TestTheVerdictBites: the check finds the mistakes of a wrong bank, and nothing in a
// right one.
func TestTheVerdictBites(t *testing.T) {
	for _, wrong := range []string{"", "a stale read", "an acknowledgement too much", "applied twice", "applied and refused", "applied in silence"} {
		bank := &wrongBank{wrong: wrong}
		server := httptest.NewServer(bank)
		var booked atomic.Int64
		ctx, cancel := context.WithCancel(t.Context())
		l := &load{
			http: newHTTPClient(20), urls: func() []string { return []string{server.URL} }, clients: 2, began: time.Now(),
			rounds: make(chan *round), booked: func(receipt) {
				if booked.Add(1) == 400 {
					cancel()
				}
			},
		}
		if err := l.open(ctx); err != nil {
			t.Fatal(err)
		}
		var v checker
		checked := make(chan struct{})
		go func() {
			v.check(l.rounds)
			close(checked)
		}()
		if err := l.run(ctx); err != nil {
			t.Error(err)
		}
		<-checked
		server.Close()
		switch {
		case wrong == "" && (v.failed != nil || v.operations < 400):
			t.Errorf("%d operations of a right bank: %v", v.operations, v.failed)
		case wrong != "" && v.failed == nil:
			t.Errorf("%s: the mistake was not found in %d operations", wrong, v.operations)
		}
	}
}

// TestUnknownOutcome: an unanswered transfer may take place at any later time, or
// never.
func TestUnknownOutcome(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/sessions" {
			answer(w, 201, session{1})
			return
		}
		cancel() // no answer will come
		w.WriteHeader(504)
	}))
	defer server.Close()
	c := &client{name: "ann", http: newHTTPClient(1), urls: func() []string { return []string{server.URL} }, retries: new(atomic.Int64)}
	if o, _, err := c.transfer(ctx, Transfer{"ann", "bob", 1}); o != Unknown || err == nil {
		t.Errorf("the outcome is %v, %v", o, err)
	}
	before := cents{10, 0, 0}
	for _, after := range []cents{{10, 0, 0}, {9, 1, 0}, {8, 2, 0}} {
		r := &round{before: before, history: []porcupine.Operation{
			{Input: operation{from: 0, to: 1, cents: 1}, Output: result{outcome: Unknown}, Call: 1, Return: never},
			{Input: operation{read: true}, Output: result{cents: before}, Call: 2, Return: 3},
			{Input: operation{read: true}, Output: result{cents: after}, Call: 4, Return: 5},
		}}
		rounds := make(chan *round, 1)
		rounds <- r
		close(rounds)
		var v checker
		v.check(rounds)
		if wrong := after[0] == 8; (v.failed != nil) != wrong {
			t.Errorf("with the balances %v afterwards: %v", after, v.failed)
		}
	}
}

// TestClientAsksAgain: a client repeats a request at other nodes until it is answered.
func TestClientAsksAgain(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	var servers []string
	for i, status := range []int{503, 504, 200} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var q transferRequest
			_ = json.NewDecoder(r.Body).Decode(&q)
			if r.URL.Path == "/sessions" {
				answer(w, 201, session{77})
				return
			}
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, string(rune('a'+i))+" "+q.From)
			if q.Session != 77 {
				t.Errorf("session %d", q.Session)
			}
			if q.From == "gone" {
				status = http.StatusGone
			}
			answer(w, status, receipt{Index: uint64(q.Sequence), Term: 1})
		}))
		defer s.Close()
		servers = append(servers, s.URL)
	}
	dead := httptest.NewServer(nil)
	dead.Close()
	servers = slices.Insert(servers, 2, dead.URL)
	var retries atomic.Int64
	c := &client{name: "ann", http: newHTTPClient(1), urls: func() []string { return servers }, retries: &retries}
	for sequence, from := range []string{"one", "two"} {
		if o, r, err := c.transfer(t.Context(), Transfer{from, "bob", 1}); o != Booked || err != nil || r.Index != uint64(sequence+1) {
			t.Errorf("%s: %v, %+v, %v", from, o, r, err)
		}
	}
	if o, _, err := c.transfer(t.Context(), Transfer{"gone", "bob", 1}); o != Unknown || err != errSessionLost || c.session != 0 {
		t.Errorf("a forgotten session: %v, %v", o, err)
	}
	if want := []string{"a one", "b one", "c one", "c two", "c gone"}; !slices.Equal(asked, want) || retries.Load() != 3 {
		t.Errorf("requests %v, want %v; %d retries", asked, want, retries.Load())
	}
}

func TestScreen(t *testing.T) {
	var out strings.Builder
	s := &screen{out: &out, terminal: true}
	s.draw("one\ntwo\n")
	s.print("news")
	s.draw("")
	block := noWrap + "one\ntwo\n" + newWrap
	if want := erase + block + "\x1b[2A" + erase + "news\n" + block + "\x1b[2A" + erase; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	out.Reset()
	s = &screen{out: &out}
	s.draw("one\n")
	s.print("news")
	if out.String() != "news\n" {
		t.Errorf("in a pipe: %q", out.String())
	}
}
