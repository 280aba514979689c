package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft"
)

// inProcess runs a bank on one disk in this process.
func inProcess(t *testing.T, dir string) (h http.Handler, stop func()) {
	t.Helper()
	topology, err := newBank(true, func(c *raft.Config) { c.Dir = dir })
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- serve(ctx, listener, topology) }()
	stop = func() {
		cancel()
		if err := <-ran; err != nil {
			t.Error(err)
		}
	}
	for topology.Ledger().Status().Role != "leader" {
		select {
		case err := <-ran:
			t.Fatal(err)
		case <-time.After(time.Millisecond):
		}
	}
	return newHandler(topology), stop
}

func request(h http.Handler, method, path, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	return w
}

func TestRequests(t *testing.T) {
	dir := t.TempDir()
	h, stop := inProcess(t, dir)
	w := request(h, "POST", "/sessions?client=ann", "")
	var s session
	if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil || w.Code != 201 || s.Session == 0 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	in := func(sequence int, rest string) string {
		return fmt.Sprintf(`{"session":"%d","sequence":%d,%s}`, s.Session, sequence, rest)
	}
	deposit, tooMuch := in(1, `"to":"a/ann","cents":10`), in(2, `"from":"a/ann","to":"b/bob","cents":11`)
	first := request(h, "POST", "/transfers", deposit).Body.String()
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"POST", "/transfers", deposit, 200, first}, // repeated, with the same answer
		{"POST", "/transfers", tooMuch, 409, `{"error":"the account does not have enough money","known":true}`},
		{"POST", "/transfers", tooMuch, 409, `{"error":"the account does not have enough money","known":true}`},
		{"POST", "/transfers", deposit, 410, `{"error":"fsm: the client no longer waits for this sequence","known":false}`},
		{"POST", "/transfers", `{"session":"1","sequence":1,"to":"ann","cents":1}`, 410, `{"error":"fsm: session has expired","known":false}`},
		{"POST", "/transfers", `{"from":"a/ann","to":"b/bob","cents":4}`, 200, `{"index":`},
		{"GET", "/balances", "", 200, `{"accounts":{"a/ann":6,"b/bob":4},"total":10}`},
		{"GET", "/balances?prefix=a/", "", 200, `{"accounts":{"a/ann":6},"total":6}`},
		{"GET", "/balances?prefix=c", "", 200, `{"accounts":{},"total":0}`},
		{"POST", "/transfers", `{"to":"ann","cents":0}`, 400, `{"error":"the two names must be different`},
		{"POST", "/transfers", `{"to":"ann","cents":1,"session":"5"}`, 400, `{"error":"session and sequence must be set together"`},
		{"POST", "/transfers", `{"to":"ann","cents":1,"fee":5}`, 400, `{"error":"the body must be a transfer`},
		{"POST", "/transfers", `{"to":"` + strings.Repeat("a", bodyBytesMax) + `"}`, 400, `{"error":"the body must be a transfer: http: request body too large"`},
		{"POST", "/sessions", "", 400, `{"error":"the parameter client must be a name`},
		{"GET", "/transfers", "", 405, ""},
		{"GET", "/status", "", 200, `{"node":"alone","role":"leader","leader":"alone","term":2,`},
	} {
		w := request(h, c.method, c.path, c.body)
		if w.Code != c.status || !strings.HasPrefix(w.Body.String(), c.want) {
			t.Errorf("%s %s %s:\n%d %s\nwant %d %s", c.method, c.path, c.body, w.Code, w.Body, c.status, c.want)
		}
	}
	stop()
	if w := request(h, "POST", "/transfers", tooMuch); w.Code != 503 || !strings.Contains(w.Body.String(), `"known":true`) {
		t.Errorf("after the stop: %d %s", w.Code, w.Body)
	}

	// Another process on the same disk still knows the session.
	h, stop = inProcess(t, dir)
	defer stop()
	if w := request(h, "POST", "/transfers", tooMuch); w.Code != 409 {
		t.Errorf("after a restart: %d %s", w.Code, w.Body)
	}
	if w := request(h, "GET", "/balances", ""); !strings.Contains(w.Body.String(), `{"a/ann":6,"b/bob":4}`) {
		t.Errorf("after a restart: %s", w.Body)
	}
}

// TestErrorsSayWhetherTheOutcomeIsKnown: the status and the body agree with fsm.
func TestErrorsSayWhetherTheOutcomeIsKnown(t *testing.T) {
	for err, want := range map[error]int{
		fsm.ErrUnknown: 504, fsm.ErrSessionExpired: 410, fsm.ErrStale: 410, fsm.ErrWindow: 410,
		&fsm.NotLeader{Leader: "n2"}: 503, fsm.ErrTooMany: 503, fsm.ErrNotRunning: 503, fsm.ErrStopped: 503,
		fmt.Errorf("%w: %w", fsm.ErrUnknown, fsm.ErrStopped): 504, ErrFunds: 409,
	} {
		w := httptest.NewRecorder()
		refuse(w, err)
		var f failure
		if json.Unmarshal(w.Body.Bytes(), &f); w.Code != want || f.Known != fsm.OutcomeKnown(err) || f.Error != err.Error() {
			t.Errorf("%v: %d %s, want %d", err, w.Code, w.Body, want)
		}
	}
}
