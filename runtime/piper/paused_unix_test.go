//go:build unix

package piper_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/child"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/supervise"
	"github.com/topogen/topogen/runtime/topo"
)

const (
	childPaused = "paused"
	pauseTime   = time.Second
	pausedTicks = 25
)

func TestMain(m *testing.M) {
	child.Run(map[string]func() error{childPaused: runPaused})
	os.Exit(m.Run())
}

// watched returns a processor whose input gets ticks and has a timeout. It counts how often the
// input breaks.
func watched(timeout time.Duration, ticks, broken *atomic.Int64) proc {
	in := new(supervise.Inputs)
	in.Init(supervise.Input{Timeout: timeout})
	wait := func(c *cell) {
		if at, ok := in.Due(); ok {
			c.SetAlarm(at)
		}
	}
	return proc{
		events: true, event: func(*cell, string) error { return nil }, finish: func(*cell) error { return nil },
		tick: func(c *cell, _ topo.Tick) error {
			ticks.Add(1)
			in.Received(0, c.Now())
			wait(c)
			return nil
		},
		alarm: func(c *cell) error {
			broken.Add(int64(len(in.Expire(c.Now(), nil))))
			wait(c)
			return nil
		},
	}
}

// runPaused is the main function of the process that the test stops. After its start, and after
// each line of its input, it handles some ticks and then prints a line.
func runPaused() error {
	var ticks, broken atomic.Int64
	var procs []proc
	var edges []edge
	for i, timeout := range []time.Duration{pauseTime / 3, pauseTime, pauseTime * 11 / 10, pauseTime * 3 / 2} {
		procs = append(procs, watched(timeout, &ticks, &broken))
		edges = append(edges, edge{from: timer, to: i, every: 20 * time.Millisecond})
	}
	top, err := construct(procs, edges)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		lines := bufio.NewScanner(os.Stdin)
		for more := true; more; more = lines.Scan() {
			for until := ticks.Load() + pausedTicks*int64(len(procs)); ticks.Load() < until; {
				time.Sleep(time.Millisecond)
			}
			fmt.Println(broken.Load(), "inputs broke")
		}
		cancel()
	}()
	return errors.Join(top.pool.Run(ctx), os.Stdout.Close())
}

// TestAPauseBreaksNoInput stops a process for about as long as the timeouts of its inputs. The
// senders are in the same process, so they are stopped too, and no input may break.
func TestAPauseBreaksNoInput(t *testing.T) {
	speed.Landing(t)
	t.Parallel()
	cmd := child.Command(childPaused)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for i := range 4 {
		if !lines.Scan() || lines.Text() != "0 inputs broke" {
			t.Errorf("after %d pauses: %s", i, lines.Text())
			break
		}
		if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		time.Sleep(pauseTime) // this pause is what the test is about
		if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(in)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
