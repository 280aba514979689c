//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/internal/hold"
	"github.com/topogen/topogen/runtime/topo"
)

// TestMain runs the processes of these tests, which are this test binary. The name of the
// processor selects what a process does.
func TestMain(m *testing.M) {
	if os.Getenv(parentVariable) != "" {
		runAsParent()
	}
	if own := ownIdentity(); own != nil && hostile[own.info.Processor] != nil {
		conn, _, _ := openInherited(own.inherited)
		hostile[own.info.Processor](conn)
		os.Exit(0)
	}
	takeOver()
	speed.Parallel(8, 0) // they wait for processes and timeouts
	os.Exit(m.Run())
}

func takeOver() {
	TakeOver("test", "hash", newScripted)
	TakeOver("another", "other hash", newScripted)
	TakeOver("ledger", "hash", newLedger)
}

// scripted executes the payload of each call as a script: a key of commands and its
// arguments. The processor's name is "camera|START|SERVE|CLOSE", with the scripts of
// these methods.
type scripted struct{ info Info }

func newScripted(info Info) Handler { return &scripted{info} }

func (s *scripted) script(part int) string {
	if parts := strings.Split(s.info.Processor, "|"); part < len(parts) {
		return parts[part]
	}
	return ""
}

func (s *scripted) Start(ctx context.Context) error {
	return do(ctx, s.script(1), nil)
}

func (s *scripted) Call(ctx context.Context, kind Kind, edge int, payload []byte, a *AnswerBuilder) error {
	return do(ctx, string(payload), &callOf{s.info, kind, edge, payload, a})
}

func (s *scripted) Close() error {
	return do(context.Background(), s.script(3), nil)
}

func do(ctx context.Context, script string, c *callOf) error {
	command, rest, _ := strings.Cut(script, " ")
	if command == "" {
		return nil
	}
	return commands[command](ctx, rest, c)
}

type callOf struct {
	info    Info
	kind    Kind
	edge    int
	payload []byte
	answer  *AnswerBuilder
}

var commands = map[string]func(ctx context.Context, rest string, c *callOf) error{
	"echo": func(_ context.Context, rest string, c *callOf) error {
		c.answer.Reply(fmt.Appendf(nil, "%d %d %s", c.kind, c.edge, rest))
		return nil
	},
	"info": func(_ context.Context, _ string, c *callOf) error {
		i := &c.info
		c.answer.Reply(fmt.Appendf(nil, "%s %s %s %d, %d of %d", i.Topology, i.Hash, i.Processor, i.ProcessorIndex, i.Instance, i.Instances))
		return nil
	},
	"token": func(ctx context.Context, _ string, c *callOf) error {
		c.answer.Reply(fmt.Appendf(nil, "%+v %d", c.info.Identity(), topo.FencingToken(ctx)))
		return nil
	},
	"send": func(_ context.Context, rest string, c *callOf) error {
		for i, word := range strings.Fields(rest) {
			c.answer.Send(i, 10+i, []byte(word))
		}
		return nil
	},
	"send-and": func(_ context.Context, rest string, c *callOf) error {
		c.answer.Send(1, 2, []byte("last"))
		c.answer.Reply([]byte("reply"))
		return returned(rest)
	},
	"send-much": func(_ context.Context, rest string, c *callOf) error {
		for range 3 {
			c.answer.Send(0, 0, make([]byte, MessageLimitDefault/3+1))
		}
		return nil
	},
	"reply-much": func(_ context.Context, rest string, c *callOf) error {
		c.answer.Reply(make([]byte, MessageLimitDefault+1))
		return nil
	},
	"hold": func(ctx context.Context, _ string, _ *callOf) error {
		held = append(held, hold.Begin(ctx))
		return nil
	},
	"release": func(_ context.Context, rest string, _ *callOf) error {
		held[0]()
		held[0]() // a second call has no effect
		held = held[1:]
		return returned(rest)
	},
	"release-later": func(_ context.Context, _ string, _ *callOf) error {
		time.AfterFunc(time.Millisecond, held[0])
		held = held[1:]
		return nil
	},
	"return-sizes": func(_ context.Context, rest string, c *callOf) error {
		for _, word := range strings.Fields(rest) {
			n, _ := strconv.Atoi(word)
			c.answer.Send(0, 0, make([]byte, n))
		}
		return nil
	},
	"done-above": func(_ context.Context, rest string, c *callOf) error {
		n, _ := strconv.Atoi(rest)
		c.answer.Send(0, 0, make([]byte, n))
		return topo.Done
	},
	"reply-size": func(_ context.Context, rest string, c *callOf) error {
		n, _ := strconv.Atoi(rest)
		c.answer.Reply(make([]byte, n))
		return nil
	},
	"return": func(_ context.Context, rest string, _ *callOf) error { return returned(rest) },
	"panic":  func(_ context.Context, rest string, _ *callOf) error { panic(rest) },
	"goexit": func(context.Context, string, *callOf) error { runtime.Goexit(); return nil },
	"crash":  func(context.Context, string, *callOf) error { go panic("elsewhere"); select {} },
	"hang":   func(context.Context, string, *callOf) error { select {} },
	"leave-group": func(context.Context, string, *callOf) error {
		if group, err := syscall.Getpgid(os.Getppid()); err != nil {
			return err
		} else if err := syscall.Setpgid(0, group); err != nil {
			return err
		}
		select {}
	},
	"spin": func(ctx context.Context, _ string, _ *callOf) error {
		for ctx.Err() == nil {
		}
		return nil
	},
	"exit": func(_ context.Context, rest string, _ *callOf) error {
		var code int
		fmt.Sscan(rest, &code)
		os.Exit(code)
		return nil
	},
	"exit-later": func(context.Context, string, *callOf) error {
		time.AfterFunc(time.Millisecond, func() { os.Exit(0) })
		return nil
	},
	"cancel": func(ctx context.Context, _ string, c *callOf) error {
		<-ctx.Done()
		return ctx.Err()
	},
	"alive": func(ctx context.Context, rest string, _ *callOf) error {
		for began := time.Now(); time.Since(began) < 50*time.Millisecond; {
			topo.Alive(ctx)
		}
		return nil
	},
	"print": func(_ context.Context, rest string, _ *callOf) error {
		fmt.Println(rest)
		fmt.Fprint(os.Stderr, rest)
		return nil
	},
	"print-much": func(_ context.Context, rest string, _ *callOf) error {
		fmt.Println(strings.Repeat("0123456789", 1<<20))
		return nil
	},
	"print-held": func(context.Context, string, *callOf) error {
		fmt.Print("hold\n" + strings.Repeat("0123456789\n", 3000))
		return nil
	},
	"environment": func(_ context.Context, rest string, c *callOf) error {
		c.answer.Reply([]byte(os.Getenv(rest)))
		return nil
	},
	"grow": func(_ context.Context, rest string, _ *callOf) error {
		for all := []byte("x"); ; {
			all = append(all, all...)
		}
	},
	"note": func(ctx context.Context, path string, c *callOf) error { // writes the process ID and hangs
		if err := os.WriteFile(path, strconv.AppendInt(nil, int64(os.Getpid()), 10), 0o600); err != nil {
			return err
		}
		select {}
	},
	"files": func(_ context.Context, _ string, c *callOf) error {
		c.answer.Reply(fmt.Append(nil, inheritable()))
		return nil
	},
	"start-process": func(_ context.Context, _ string, c *callOf) error {
		process := exec.Command("sleep", "1000")
		process.Stdout, process.Stderr = os.Stdout, os.Stderr
		err := process.Start()
		c.answer.Reply(fmt.Append(nil, process.Process.Pid))
		return err
	},
	"stdin": func(_ context.Context, _ string, c *callOf) error {
		text, err := io.ReadAll(os.Stdin)
		c.answer.Reply(fmt.Append(nil, len(text), err))
		return nil
	},
}

// held are the release functions of the instance's holds.
var held []func()

// returned returns the error with that name.
func returned(name string) error {
	for _, s := range sentinels {
		switch name {
		case s.Error():
			return s
		case "wrapped " + s.Error():
			return fmt.Errorf("wrapped: %w", s)
		case "joined " + s.Error():
			return fmt.Errorf("wrapped: %w", errors.Join(s, errors.New("out of paper")))
		}
	}
	return errors.New(name)
}

// Serve sends numbers, each to two edges, unless there is a script for it.
func (s *scripted) Serve(ctx context.Context, send func(Flush) error) error {
	if s.script(2) == "send-above" { // one message is small enough, but not two
		return send(func(put func(edge, instance int, payload []byte) error) error {
			return errors.Join(put(0, 0, make([]byte, s.info.MessageLimit/2)), put(1, 0, make([]byte, s.info.MessageLimit/2)))
		})
	}
	if script := s.script(2); script != "" {
		return do(ctx, script, nil)
	}
	for i := 0; ctx.Err() == nil; i++ {
		err := send(func(put func(edge, instance int, payload []byte) error) error {
			return errors.Join(put(i, i+1, fmt.Append(nil, i)), put(i+1, 0, fmt.Append(nil, -i)))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// settings returns the settings of a process with that name.
func settings(name string) Settings {
	return Settings{
		Info:   Info{Topology: "test", Hash: "hash", Processor: name, ProcessorIndex: 3, Instance: 1, Instances: 2},
		Logger: slog.New(slog.DiscardHandler),
	}
}

// start starts a process that is killed at the end of the test.
func start(t testing.TB, s Settings) *Child {
	t.Helper()
	c, err := Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Kill(); <-c.Done() })
	return c
}

// ask makes a call, and fails the test if the process fails.
func ask(t testing.TB, c *Child, script string) *Answer {
	t.Helper()
	a, err := c.Call(7, -1, []byte(script))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// exitOf returns the ExitError in err.
func exitOf(t testing.TB, err error) *ExitError {
	t.Helper()
	var exit *ExitError
	if !errors.As(err, &exit) {
		t.Fatalf("the error is %v, want an ExitError", err)
	}
	return exit
}

// until waits until holds returns true.
func until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(30 * time.Second); !holds(); <-poll.C {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}
