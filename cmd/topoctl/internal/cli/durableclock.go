package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/store"
)

// DurableClock shows the time of a store that is not in use, or sets it back.
type DurableClock struct {
	Dir string
	Set string // "": only show it
}

// clockNow is the value of --set that means the clock of the computer.
const clockNow = "now"

func newDurableClock(chosen *command) *cobra.Command {
	c := DurableClock{}
	cmd := &cobra.Command{
		Use:   "clock STORE",
		Short: "Show the time of a store, and set it back after a clock was wrong",
		Long: `Show the time of the store in the folder STORE and that of this computer. The time of a
store never goes back by itself. If the clock of its server was ahead for so long that the
server believed it, deadlines come too early until the clock has caught up: promises can
time out when they are created.

--set sets the time of the store back, to that of this computer or to a time such as
2026-01-31T12:00:00Z. No server may have the store open. Promises that have timed out
remain so: the command first stores that they have. Pending promises and schedules go on
from the new time.

The command exits with 1 if the store is ahead of this computer by more than a minute.`,
		Example: `  topoctl durable clock ./promises
  topoctl durable clock ./promises --set now`,
		Args: oneOf("the folder of the store"),
		RunE: func(_ *cobra.Command, args []string) error {
			c.Dir = args[0]
			*chosen = c
			_, err := c.time(time.Now())
			return err
		},
	}
	cmd.Flags().StringVar(&c.Set, "set", "", "the new time: \"now\", or a time such as 2026-01-31T12:00:00Z")
	return cmd
}

// time returns the time of --set.
func (c DurableClock) time(now time.Time) (time.Time, error) {
	if c.Set == "" || c.Set == clockNow {
		return now, nil
	}
	t, err := time.Parse(time.RFC3339, c.Set)
	if err != nil {
		return t, fmt.Errorf("--set must be %q or a time such as 2026-01-31T12:00:00Z, got %q", clockNow, c.Set)
	}
	if now.Sub(t) > engine.JumpMax {
		return t, fmt.Errorf("--set must not be before the time of this computer, %s, got %q: schedules would make up for the time between", now.UTC().Format(time.RFC3339), c.Set)
	}
	return t, nil
}

func (c DurableClock) run(_ context.Context, s Streams) (err error) {
	disk, err := c.open()
	if err != nil {
		return c.explain(err)
	}
	defer func() { err = errors.Join(err, disk.Close()) }()
	now := time.Now()
	to, err := c.time(now)
	if err != nil {
		return err
	}
	if c.Set != "" {
		switch err := engine.SetBack(disk, to); {
		case errors.Is(err, engine.ErrNotAhead):
			fmt.Fprintln(s.Err, "topoctl: the store is not ahead of that time, and is not changed")
		case err != nil:
			return c.explain(err)
		}
	}
	at, err := c.read(disk)
	if err != nil {
		return c.explain(err)
	}
	return c.print(s, at, now)
}

// open opens the store, which the command without --set does not change.
func (c DurableClock) open() (store.Store, error) {
	if c.Set == "" {
		return store.OpenReadOnly(c.Dir, store.Options{})
	}
	return store.Open(c.Dir, store.Options{MustExist: true})
}

// read returns the time of a store, or the zero instant if it has none.
func (c DurableClock) read(disk store.Store) (at core.Instant, err error) {
	err = disk.View(func(tx store.Tx) error {
		at, _, err = engine.LastCommit(tx)
		return err
	})
	return at, err
}

func (c DurableClock) print(s Streams, at core.Instant, now time.Time) error {
	stored := time.UnixMilli(at.Wall).UTC()
	shown, ahead := stored.Format(time.RFC3339), stored.Sub(now).Round(time.Second)
	if at == (core.Instant{}) {
		shown, ahead = "none", 0
	}
	if err := (fields{{"store", shown}, {"computer", now.UTC().Format(time.RFC3339)}}).print(s.Out); err != nil {
		return err
	}
	if ahead > engine.JumpMax {
		return negative(fmt.Sprintf("%s is %v ahead of this computer. If the clock of this computer is right, set the store back with --set now", oneLine(c.Dir), ahead))
	}
	return nil
}

// explain says what to do if the store cannot be used.
func (c DurableClock) explain(err error) error {
	advice := ""
	switch {
	case errors.Is(err, store.ErrInUse):
		advice = "\nStop the server: it would not notice that its time was changed."
	case errors.Is(err, fs.ErrNotExist):
		advice = "\nName the folder of a store: the one of \"topoctl durable serve --store\", or of the section durable of a topology."
	}
	return fmt.Errorf("cannot use %s: %s%s", oneLine(c.Dir), oneLine(err.Error()), advice)
}
