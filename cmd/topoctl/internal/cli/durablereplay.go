package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// environmentReplay makes a program with durable edges replay a store in place of running.
const environmentReplay = "TOPOGEN_REPLAY"

// DurableReplay replays the executions in a store with a program.
type DurableReplay struct {
	Store   string // a folder, or the URL of a server
	Command []string
}

func newDurableReplay(chosen *command) *cobra.Command {
	d := DurableReplay{}
	cmd := &cobra.Command{
		Use:   "replay STORE -- COMMAND [ARG…]",
		Short: "Check whether a changed program continues recorded executions",
		Long: `Run the program COMMAND, which has a topology with durable edges, so that it replays the
executions in STORE in place of running: it calls the handlers with the recorded results of
their steps, and reports each execution in which a handler takes another path than the
recorded one, and each that has not ended and whose message the program cannot decode. No
step runs, and STORE is only read. Do this before you install a changed program. The
handlers themselves do run, so they must have no effects outside of steps.

STORE is the folder of a store that no process has open, such as a restored backup, or
the URL of a server. The program prints the report. The command exits with 1 if an execution
diverges.`,
		Example: `  topoctl durable replay ./promises.copy -- ./shop
  topoctl durable replay http://127.0.0.1:8001 -- go run .`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch dash := cmd.ArgsLenAtDash(); {
			case dash != 1 || args[0] == "":
				return errors.New("name the store, and the program after --: topoctl durable replay STORE -- COMMAND")
			case len(args) == 1:
				return errors.New("name the program after --")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			d.Store, d.Command = args[0], args[1:]
			*chosen = d
			return nil
		},
	}
	return cmd
}

// replayTotals is the last line that the runtime prints after a replay.
var replayTotals = regexp.MustCompile(`(?m)^(\d+) executions of topology .* were replayed, (\d+) of them diverge$`)

func (d DurableReplay) run(_ context.Context, s Streams) error {
	name := d.Store
	if !strings.Contains(name, "://") {
		info, err := os.Stat(name)
		if err == nil && !info.IsDir() {
			err = errors.New("it is not a folder")
		}
		if err == nil {
			name, err = filepath.Abs(name) // the program may change its folder
		}
		if err != nil {
			const advice = "\nName the folder of a store, or the URL of a server."
			return fmt.Errorf("cannot replay %s: %w%s", oneLine(d.Store), err, advice)
		}
	}
	var end tail
	program := exec.Command(d.Command[0], d.Command[1:]...)
	program.Stdin, program.Stdout, program.Stderr = os.Stdin, io.MultiWriter(s.Out, &end), s.Err
	program.Env = append(os.Environ(), environmentReplay+"="+name)
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt) // the program gets it too, and decides
	defer signal.Stop(interrupts)
	err := program.Run()
	_, exited := errors.AsType[*exec.ExitError](err)
	totals := replayTotals.FindSubmatch(end.text)
	switch {
	case err != nil && !exited:
		return fmt.Errorf("cannot run %s: %w", oneLine(d.Command[0]), err)
	case totals != nil && string(totals[2]) != "0":
		return negative(fmt.Sprintf("%s of %s executions diverge from their records", totals[2], totals[1]))
	case err != nil:
		return fmt.Errorf("the program has failed: %w", err)
	case totals == nil:
		return fmt.Errorf("%s has not replayed a store: it must run a topology with durable edges that this version of topogen has generated", oneLine(d.Command[0]))
	}
	return nil
}

// tail keeps the end of a text, in which the totals are.
type tail struct{ text []byte }

const tailBytes = 4096

func (t *tail) Write(b []byte) (int, error) {
	t.text = append(t.text, b...)
	if extra := len(t.text) - tailBytes; extra > tailBytes {
		t.text = slices.Delete(t.text, 0, extra)
	}
	return len(b), nil
}
