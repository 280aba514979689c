package piper_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/topo"
)

// TestWhichErrorsAreACleanEnd has sources that return errors with signals. An error that is
// joined to a signal must count as a failure.
func TestWhichErrorsAreACleanEnd(t *testing.T) {
	for name, c := range map[string]struct {
		ping, serve error
		fails       bool
	}{
		"Ping: done":                {ping: topo.Done},
		"Ping: wrapped":             {ping: fmt.Errorf("end of file: %w", topo.Done)},
		"Ping: done twice":          {ping: errors.Join(topo.Done, nil, topo.Done)},
		"Ping: done and idle":       {ping: errors.Join(topo.Idle, topo.Done)},
		"Ping: joined":              {ping: errors.Join(topo.Done, errFailed), fails: true},
		"Ping: joined and wrapped":  {ping: fmt.Errorf("end: %w", errors.Join(errFailed, topo.Done)), fails: true},
		"Ping: idle, joined":        {ping: errors.Join(topo.Idle, errFailed), fails: true},
		"Serve: canceled":           {serve: context.Canceled},
		"Serve: stopping":           {serve: fmt.Errorf("x: %w", topo.ErrStopping)},
		"Serve: both":               {serve: errors.Join(topo.ErrStopping, context.Canceled)},
		"Serve: described":          {serve: fmt.Errorf("%w: %w", errFailed, context.Canceled)},
		"Serve: joined to canceled": {serve: errors.Join(context.Canceled, errFailed), fails: true},
		"Serve: joined to stopping": {serve: errors.Join(errFailed, topo.ErrStopping), fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				p := proc{ping: func(*cell) error { return c.ping }}
				if c.serve != nil {
					p = proc{serve: func(_ *cell, ctx context.Context) error { <-ctx.Done(); return c.serve }}
				}
				if err := build(t, []proc{p}, nil).run(t, ctx); errors.Is(err, errFailed) != c.fails || (err != nil) != c.fails {
					t.Errorf("Run returns %v", err)
				}
			})
		})
	}
}
