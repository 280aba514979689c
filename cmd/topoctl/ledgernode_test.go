package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/topogen/topogen/runtime/raft"
)

// ledgerNode is the program ledgernode PATH HTTP of the scripts: a node of group ledger of
// topology bank, whose log is at PATH and which serves
//
//	/add?n=N  adds to the sum
//	/sum      what it is now
//	/id       of the group
//
// The environment variables of package raft say which node it is. Without
// TOPOGEN_RAFT_PEERS it is one disk alone.
func ledgerNode() {
	fmt.Fprintln(os.Stderr, serveLedger(os.Args[1], os.Args[2])) // it ends with an error, or is killed
	os.Exit(1)
}

func serveLedger(path, address string) error {
	c := raft.Config{Group: "ledger", Dir: path, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	if os.Getenv(raft.VariablePeers) != "" {
		c.Peers = map[string]string{"": ""} // the variable is heeded where there are some
	}
	if err := c.FromEnvironment(); err != nil {
		return err
	}
	m, err := newMachine(c)
	if err != nil {
		return err
	}
	if err := m.Start(context.Background(), nil); err != nil {
		return err
	}
	answer := func(w http.ResponseWriter, f func(ctx context.Context) (string, error)) func(r *http.Request) {
		return func(r *http.Request) {
			text, err := f(r.Context()) // an update is not asked for twice: it waits
			if err != nil {
				text = err.Error()
			}
			_, _ = io.WriteString(w, text) // the script has gone
		}
	}
	http.HandleFunc("/add", func(w http.ResponseWriter, r *http.Request) {
		answer(w, func(ctx context.Context) (string, error) {
			n, err := strconv.ParseUint(r.FormValue("n"), 10, 64)
			if err != nil {
				return "", err
			}
			_, err = m.Propose(ctx, plus{n})
			return "added", err
		})(r)
	})
	http.HandleFunc("/sum", func(w http.ResponseWriter, r *http.Request) {
		answer(w, func(ctx context.Context) (text string, err error) {
			err = m.Read(ctx, func(s *sum) { text = strconv.FormatUint(s.n, 10) })
			return text, err
		})(r)
	})
	http.HandleFunc("/id", func(w http.ResponseWriter, r *http.Request) {
		answer(w, func(context.Context) (string, error) { return fmt.Sprintf("%016x", m.Status().GroupID), nil })(r)
	})
	return http.ListenAndServe(address, nil)
}

// ports NAME…: sets each variable to an address of loopback where no one listens.
func ports(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: ports NAME…")
	}
	for i, address := range freeAddresses(ts, len(args)) {
		ts.Setenv(args[i], address)
	}
}

const askMax = 30 * time.Second // for an answer: many elections

// ask ADDRESS/PATH WANT: asks a ledgernode, until it answers that.
func ask(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: ask ADDRESS/PATH WANT")
	}
	got := ""
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for end := time.Now().Add(askMax); time.Now().Before(end); <-poll.C {
		r, err := http.Get("http://" + args[0])
		if err != nil {
			got = err.Error()
			continue
		}
		b, err := io.ReadAll(r.Body)
		if err = errors.Join(err, r.Body.Close()); err != nil {
			got = err.Error()
		} else if got = string(b); got == strings.TrimSpace(args[1]) {
			return
		}
	}
	ts.Fatalf("%s: %s, want %s", args[0], got, args[1])
}
