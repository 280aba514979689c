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

// ledgerNode is the program "ledgernode PATH HTTP" of the scripts. It is a node of group
// ledger of topology bank, with its log at PATH, and serves over HTTP:
//
//	/add?n=N  adds to the sum
//	/sum      returns the sum
//	/id       returns the identity of the group
//
// The environment variables of package raft name the node. Without TOPOGEN_RAFT_PEERS
// the state machine is on one disk.
func ledgerNode() {
	fmt.Fprintln(os.Stderr, serveLedger(os.Args[1], os.Args[2])) // the process ends with an error, or is killed
	os.Exit(1)
}

func serveLedger(path, address string) error {
	c := raft.Config{Group: "ledger", Dir: path, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	if os.Getenv(raft.VariablePeers) != "" {
		c.Peers = map[string]string{"": ""} // the environment variable counts only if there are peers
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
			text, err := f(r.Context()) // no client timeout: a repeated request would repeat the update
			if err != nil {
				text = err.Error()
			}
			_, _ = io.WriteString(w, text) // an error means that the script has ended
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

// ports NAME…: sets each variable to a free loopback address.
func ports(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: ports NAME…")
	}
	for i, address := range freeAddresses(ts, len(args)) {
		ts.Setenv(args[i], address)
	}
}

const askMax = 30 * time.Second // enough for many elections

// ask ADDRESS/PATH WANT: requests the path until the ledgernode answers WANT.
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
