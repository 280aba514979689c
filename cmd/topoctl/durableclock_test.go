package main

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/store"
)

// aheadClock is the clock of a computer that is ahead.
type aheadClock struct {
	engine.Clock
	by time.Duration
}

func (c aheadClock) Wall() time.Time { return c.Clock.Wall().Add(c.by) }

// storeahead DIR DURATION: makes a store whose clock was ahead, with promise "dead", whose
// deadline of 24 hours has passed by that clock.
func storeAhead(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: storeahead DIR DURATION")
	}
	by, err := time.ParseDuration(args[1])
	ts.Check(err)
	disk, err := store.Open(ts.MkAbs(args[0]), store.Options{})
	ts.Check(err)
	e, err := engine.Open(engine.Config{Store: disk, Clock: aheadClock{engine.NewClock(), by}, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	ts.Check(err)
	_, err = e.Do(context.Background(), protocol.PromiseCreate{ID: "dead", TimeoutAt: time.Now().Add(24 * time.Hour).UnixMilli()})
	ts.Check(err)
	ts.Check(e.Close(context.Background()))
}
