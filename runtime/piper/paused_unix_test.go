//go:build unix

package piper_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/child"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/supervise"
	"github.com/topogen/topogen/runtime/topo"
)

const (
	childPaused  = "paused"
	childStopped = "stopped"
	pauseTime    = time.Second
	pausedTicks  = 25
)

func TestMain(m *testing.M) {
	child.Run(map[string]func() error{childPaused: runPaused, childStopped: runStopped})
	os.Exit(m.Run())
}

// watched returns a processor whose input gets ticks and has a timeout. It counts how often the
// input breaks.
func watched(timeout time.Duration, ticks, broken *atomic.Int64) proc {
	in := new(supervise.Inputs)
	in.Init(supervise.Input{Timeout: timeout})
	wait := func(c *cell) {
		if at, ok := in.Due(); ok {
			c.Inputs().SetAlarm(at)
		}
	}
	return proc{
		events: true, event: func(*cell, string) error { return nil }, finish: func(*cell) error { return nil },
		tick: func(c *cell, _ topo.Tick) error {
			ticks.Add(1)
			in.Received(0, c.Inputs().Now())
			wait(c)
			return nil
		},
		alarm: func(c *cell) error {
			broken.Add(int64(len(in.Expire(c.Inputs().Now(), nil))))
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

// runStopped is the main function of the process that the test stops while a member of a restart
// group stops. The member takes 200 ms of running time for its handler, for Close and for its next
// start, and each of them may take half a second.
func runStopped() error {
	steps := func(what string) {
		for i := range 10 {
			if i == 1 {
				fmt.Println(what)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	handles, closes := make(chan struct{}), 0
	var started atomic.Bool
	member := proc{
		watch: &piper.Watch{Attempts: 2, Timeout: pauseTime / 2, Shutdown: pauseTime / 2, Startup: pauseTime / 2}, blocking: true,
		receive: func(*cell, *message) error {
			close(handles)
			steps("handles a message")
			return nil
		},
		make: func(*cell, int) error {
			steps("starts")
			started.Store(true)
			return nil
		},
		close: func(*cell) error {
			if closes++; closes == 1 {
				steps("closes")
			}
			return nil
		},
		finish: func(*cell) error { return nil },
	}
	fails := proc{watch: &piper.Watch{Attempts: 1}, blocking: true, receive: func(*cell, *message) error { <-handles; return errFailed }}
	sent := false
	source := proc{ping: func(c *cell) error {
		switch {
		case !sent:
			sent = true
			return errors.Join(c.send(0, 0, message{}), c.send(1, 0, message{}))
		case started.Load():
			return topo.Done
		}
		return topo.Idle // the inputs of the member are open until it has started again
	}}
	v := supervise.New(supervise.Spec{
		Processors: []supervise.Processor{{}, restarted("p1", supervise.OnFailure, 0), restarted("p2", supervise.OnFailure, 0)},
		Groups:     []supervise.Group{{Name: "g", Processors: []int{1, 2}, Strategy: supervise.OneForAll}},
	})
	top, err := constructWith(v, []proc{source, fails, member}, []edge{{from: 0, to: 1}, {from: 0, to: 2}}, piper.Workers(2))
	if err != nil {
		return err
	}
	err = top.pool.Run(context.Background())
	f := top.pool.Snapshot().Faults
	fmt.Println("ends:", err, "abandoned", f.Abandoned, "killed", f.HealthCheckKills)
	return os.Stdout.Close()
}

// TestAPauseStopsNoMember stops a process for longer than the timeouts of a member that stops and
// starts again with its restart group. The member does not run in this time, so it must not be
// abandoned.
func TestAPauseStopsNoMember(t *testing.T) {
	speed.Landing(t)
	t.Parallel()
	cmd := child.Command(childStopped)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		got = append(got, lines.Text())
		if strings.HasPrefix(lines.Text(), "ends") {
			break
		}
		if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		time.Sleep(pauseTime) // this pause is what the test is about
		if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"handles a message", "closes", "starts", "ends: <nil> abandoned 0 killed 0"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
