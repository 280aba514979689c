//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package process

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/topo"
)

// ledgerSends is the number of messages that a call of the ledger sends. They do not fit
// into a socket buffer, so a kill can also hit the middle of an answer.
const ledgerSends = 500

// ledger appends the number of each call to a file when the call begins. The name of the
// processor is the path of the file.
type ledger struct {
	info Info
	file *os.File
}

func newLedger(info Info) Handler { return &ledger{info: info} }

func (l *ledger) Start(context.Context) (err error) {
	l.file, err = os.OpenFile(l.info.Processor, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	return err
}

func (l *ledger) Call(_ context.Context, _ Kind, _ int, payload []byte, a *AnswerBuilder) error {
	if _, err := fmt.Fprintf(l.file, "%d\n", binary.BigEndian.Uint64(payload)); err != nil {
		return err
	}
	for i := range ledgerSends {
		a.Send(i, 0, bytes.Repeat(payload, 128))
	}
	return nil
}

func (l *ledger) Serve(context.Context, func(Flush) error) error { return topo.Done }
func (l *ledger) Close() error                                   { return l.file.Close() }

// TestRandomKills kills the process at random times. Each message is handled until it is
// answered. Every message gets exactly one complete answer, and each failed call is
// explained by one kill.
func TestRandomKills(t *testing.T) {
	t.Parallel() // it waits for processes
	kills := speed.Pick(t, 20, 100, 1000)
	path := filepath.Join(t.TempDir(), "ledger")
	s := settings(path)
	s.Topology = "ledger"
	random := rand.New(rand.NewPCG(1, 2))
	var c *Child
	answered, deaths, between := 0, 0, 0
	for deaths < kills {
		if c == nil {
			var err error
			if c, err = Start(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			victim := c
			killer := time.AfterFunc(time.Duration(random.IntN(20_000_000)), func() { syscall.Kill(victim.PID(), syscall.SIGKILL) })
			defer killer.Stop()
		}
		payload := binary.BigEndian.AppendUint64(nil, uint64(answered))
		a, err := c.Call(1, 0, payload)
		if err != nil {
			if e := exitOf(t, err); e.Exit.Signal != "SIGKILL" || e.Cause != nil || !e.Exit.InCall {
				t.Fatalf("call %d: %v", answered, e)
			}
			deaths++
			c = nil
			continue
		}
		n := 0
		for send := range a.Sends() {
			if send.Edge != n || !bytes.Equal(send.Payload, bytes.Repeat(payload, 128)) {
				t.Fatalf("message %d of call %d is wrong", n, answered)
			}
			n++
		}
		if n != ledgerSends {
			t.Fatalf("the answer of call %d has %d messages", answered, n)
		}
		answered++
		if c.Err() != nil {
			between++
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	begun := make(map[int]int)
	total := 0
	for line := range strings.Lines(string(text)) {
		var n int
		if _, err := fmt.Sscan(line, &n); err != nil {
			t.Fatal(err)
		}
		begun[n]++
		total++
	}
	for n := range answered {
		if begun[n] == 0 {
			t.Errorf("call %d was answered but never begun", n)
		}
	}
	if total > answered+deaths {
		t.Errorf("%d calls began, but only %d were answered and %d ended by a kill", total, answered, deaths)
	}
	t.Logf("%d answered, %d killed, of which %d had begun", answered, deaths, total-answered)
}

// TestKilledFromOutside kills the process in each phase of its lifecycle.
func TestKilledFromOutside(t *testing.T) {
	t.Parallel() // it waits for processes
	kill := func(pid int) { syscall.Kill(pid, syscall.SIGKILL) }
	check := func(t *testing.T, err error, inCall bool) {
		t.Helper()
		e := exitOf(t, err)
		if e.Exit.Signal != "SIGKILL" || e.Exit.Code != -1 || e.Cause != nil || e.Exit.InCall != inCall || e.Exit.Clean() {
			t.Errorf("%v: %+v", e, e.Exit)
		}
	}
	note := filepath.Join(t.TempDir(), "pid")
	noted := func() {
		var pid int
		until(t, "the process writes its process ID", func() bool {
			text, _ := os.ReadFile(note)
			n, _ := fmt.Sscan(string(text), &pid)
			return n == 1
		})
		os.Remove(note)
		kill(pid)
	}
	t.Run("start", func(t *testing.T) {
		go noted()
		_, err := Start(t.Context(), settings("camera|note "+note))
		check(t, err, false)
	})
	t.Run("call", func(t *testing.T) {
		c := start(t, settings("camera"))
		go noted()
		_, err := c.Call(1, 0, []byte("note "+note))
		check(t, err, true)
	})
	t.Run("between", func(t *testing.T) {
		c := start(t, settings("camera"))
		kill(c.PID())
		<-c.Done()
		check(t, c.Err(), false)
		_, err := c.Close()
		check(t, err, false)
	})
	t.Run("serve", func(t *testing.T) {
		c := start(t, settings("camera"))
		n := 0
		err := c.Serve(func(iter.Seq[Send]) error {
			if n++; n == 3 {
				kill(c.PID())
			}
			return nil
		})
		check(t, err, false)
	})
	t.Run("close", func(t *testing.T) {
		c := start(t, settings("camera|||note "+note))
		go noted()
		_, err := c.Close()
		check(t, err, false)
	})
}

// TestKill: a Kill on another goroutine ends the call in progress.
func TestKill(t *testing.T) {
	for name, underWay := range map[string]func(c *Child) error{
		"call":  func(c *Child) error { _, err := c.Call(1, 0, []byte("hang")); return err },
		"spin":  func(c *Child) error { _, err := c.Call(1, 0, []byte("spin")); return err },
		"serve": func(c *Child) error { return c.Serve(nil) },
		"close": func(c *Child) error { _, err := c.Close(); return err },
	} {
		c := start(t, settings("camera||hang|hang"))
		go c.Kill()
		if err := underWay(c); !errors.Is(err, ErrKilled) || exitOf(t, err).Exit.Signal != "SIGKILL" {
			t.Errorf("%s: %v", name, err)
		}
		c.Kill() // the process has ended
	}
}
