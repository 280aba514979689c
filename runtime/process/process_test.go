//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/topogen/topogen/runtime/internal/chain"
	"github.com/topogen/topogen/runtime/topo"
)

func TestCall(t *testing.T) {
	t.Parallel() // it copies a large message
	c := start(t, settings("camera"))
	if a := ask(t, c, "echo hello"); a.Err != nil || string(a.Reply) != "7 -1 hello" {
		t.Errorf("the answer is %q, %v", a.Reply, a.Err)
	}
	if a := ask(t, c, "info"); string(a.Reply) != "test hash camera 3, 1 of 2" {
		t.Errorf("the process is %q", a.Reply)
	}
	var sent []string
	a := ask(t, c, "send a bc  def")
	for s := range a.Sends() {
		sent = append(sent, fmt.Sprintf("%d %d %s", s.Edge, s.Instance, s.Payload))
	}
	if got := strings.Join(sent, ", "); got != "0 10 a, 1 11 bc, 2 12 def" {
		t.Errorf("sent: %s", got)
	}
	if a.Reply != nil {
		t.Errorf("the call has no reply, got %q", a.Reply)
	}
	large := "echo " + strings.Repeat("x", MessageLimitDefault/8)
	if a := ask(t, c, large); !bytes.HasSuffix(a.Reply, []byte(large[5:])) {
		t.Errorf("a large answer has %d bytes", len(a.Reply))
	}
	if c.Err() != nil {
		t.Errorf("the process runs, but Err is %v", c.Err())
	}
	if exit, err := c.Close(); err != nil || !exit.Clean() || exit.PID != c.PID() {
		t.Errorf("Close: %+v, %v", exit, err)
	}
	if _, err := c.Call(1, 1, nil); !exitOf(t, err).Exit.InCall {
		t.Errorf("after Close: %v", err)
	}
}

// TestErrorsKeepTheirIdentity: errors keep their identity between processes, and messages
// are only delivered with the errors Done and Idle, and only if Ping returns them. From
// any other method they are failures: the next attempt sends the messages again. An error
// that is joined to a signal is a failure too.
func TestErrorsKeepTheirIdentity(t *testing.T) {
	c := start(t, settings("camera"))
	for _, want := range sentinels {
		signal := want == topo.Done || want == topo.Idle
		for kind := Receive; kind < Held; kind++ {
			for _, prefix := range []string{"", "wrapped ", "joined "} {
				a, err := c.Call(kind, 0, []byte("send-and "+prefix+want.Error()))
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range sentinels {
					if errors.Is(a.Err, s) != (s == want) {
						t.Errorf("%s%v matches %v", prefix, want, s)
					}
				}
				if is, _ := chain.Sort(a.Err, sentinels...); (is == want) != (prefix != "joined ") {
					t.Errorf("%s%v counts as %v", prefix, want, is)
				}
				if prefix == "" && a.Err != want {
					t.Errorf("%v is wrapped: %#v", want, a.Err)
				}
				if a.Reply != nil {
					t.Errorf("%v has a reply", want)
				}
				n := 0
				for range a.Sends() {
					n++
				}
				if (n == 1) != (signal && kind == Ping && prefix != "joined ") {
					t.Errorf("kind %d, %s%v: %d messages were sent", kind, prefix, want, n)
				}
			}
		}
	}
	if a := ask(t, c, "return out of paper"); a.Err.Error() != "out of paper" {
		t.Errorf("%v", a.Err)
	}
}

// TestErrorsCountAsTheSameSignal compares errors with what another process gets of them. An error of
// fmt.Errorf is one error, also if it wraps several errors that keep their identity.
func TestErrorsCountAsTheSameSignal(t *testing.T) {
	other := errors.New("out of paper")
	for _, err := range []error{
		fmt.Errorf("%w: %w", topo.Idle, topo.ErrFull),
		fmt.Errorf("%w: %w", context.DeadlineExceeded, context.Canceled),
		fmt.Errorf("%w: %w", other, topo.ErrStopping),
		fmt.Errorf("%w: %w", errors.Join(topo.Done, other), topo.Idle),
		errors.Join(topo.Done, topo.Idle),
		errors.Join(topo.Done, fmt.Errorf("%w: %w", topo.ErrFull, topo.Done)),
		errors.Join(topo.Done, context.Canceled),
		errors.Join(context.Canceled, other),
		errors.Join(topo.ErrStopping, fmt.Errorf("%w: %w", topo.ErrClosed, other)),
	} {
		remote := (&fields{rest: appendError(nil, err, nil)}).error()
		for _, s := range sentinels {
			if errors.Is(remote, s) != errors.Is(err, s) {
				t.Errorf("%v matches %v: %v", err, s, errors.Is(remote, s))
			}
		}
		for _, signals := range [][]error{{topo.Done, topo.Idle}, {topo.ErrStopping, context.Canceled}, {topo.ErrStopping}, sentinels} {
			want, _ := chain.Sort(err, signals...)
			if got, _ := chain.Sort(remote, signals...); (got == nil) != (want == nil) {
				t.Errorf("%v: of %v it counts as %v, want %v", err, signals, got, want)
			}
		}
	}
}

func TestTooLarge(t *testing.T) {
	t.Parallel() // it allocates large messages
	c := start(t, settings("camera"))
	if _, err := c.Call(1, 1, make([]byte, MessageLimitDefault)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a large payload: %v", err)
	}
	for _, script := range []string{"send-much", "reply-much"} {
		if a := ask(t, c, script); !errors.Is(a.Err, ErrTooLarge) {
			t.Errorf("%s: %v", script, a.Err)
		}
	}
	if a := ask(t, c, "echo on"); string(a.Reply) != "7 -1 on" {
		t.Errorf("the process does not answer any more: %q", a.Reply)
	}
}

// TestMessageLimit: both ends enforce a lower limit, for a message and for a call.
func TestMessageLimit(t *testing.T) {
	s := settings("camera||send-above")
	s.MessageLimit = MessageLimitMin
	c := start(t, s)
	largest := MessageLimitMin - messageOverhead
	if _, err := c.Call(1, 1, make([]byte, largest+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a large message: %v", err)
	}
	for script, fits := range map[string]bool{
		fmt.Sprint("return-sizes ", largest):                                        true,
		fmt.Sprint("return-sizes ", largest+1):                                      false,
		fmt.Sprint("return-sizes 0 ", largest-messageOverhead):                      true, // an empty message counts too
		fmt.Sprint("return-sizes 0 ", largest-messageOverhead+1):                    false,
		fmt.Sprint("return-sizes", strings.Repeat(" 0", 1+largest/messageOverhead)): true,
		fmt.Sprint("return-sizes", strings.Repeat(" 0", 2+largest/messageOverhead)): false,
		fmt.Sprint("reply-size ", largest):                                          true,
		fmt.Sprint("reply-size ", largest+1):                                        false,
		fmt.Sprint("done-above ", largest+1):                                        false,
	} {
		a, err := c.Call(Ping, 0, []byte(script))
		if err != nil {
			t.Fatal(err)
		}
		if errors.Is(a.Err, ErrTooLarge) == fits || fits && a.Err != nil {
			t.Errorf("%.40s: %v", script, a.Err)
		}
	}
	if err := c.Serve(nil); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a large message of Serve: %v", err)
	}
	if a := ask(t, c, "echo on"); string(a.Reply) != "7 -1 on" {
		t.Errorf("the process does not answer any more: %q", a.Reply)
	}
	for _, limit := range []int{-1, 1, MessageLimitMin - 1, MessageLimitMax + 1} {
		s.MessageLimit = limit
		if _, err := Start(t.Context(), s); err == nil || !strings.Contains(err.Error(), fmt.Sprint(limit)) {
			t.Errorf("a limit of %d: %v", limit, err)
		}
	}
}

// TestHolds: each answer contains the number of holds, also if the call fails, and a call
// of kind Held updates it after a goroutine has released a hold between calls.
func TestHolds(t *testing.T) {
	r := &Remote{child: start(t, settings("camera"))}
	call := func(kind Kind, script string) error {
		_, err := r.Call(kind, 0, []byte(script), func(int, int, []byte, bool) error { return nil })
		return err
	}
	for _, step := range []struct {
		script string
		want   int
	}{
		{"echo on", 0}, {"hold", 1}, {"hold", 2}, {"echo on", 2}, {"send a b", 2}, {"return no", 2}, {"release no", 1}, {"hold", 2}, {"release", 1}, {"release-later", 1},
	} {
		call(Receive, step.script)
		if r.Holds() > step.want || r.Holds() < step.want && step.script != "release-later" {
			t.Errorf("%s: got %d holds, want %d", step.script, r.Holds(), step.want)
		}
	}
	until(t, "the hold is released", func() bool {
		if err := call(Held, "exit 3"); err != nil { // the handler is not called
			t.Fatal(err)
		}
		return r.Holds() == 0
	})
	call(Receive, "hold")
	if call(Receive, "exit 3"); r.Holds() != 0 {
		t.Errorf("got %d holds of a process that has ended", r.Holds())
	}
}

func TestPanics(t *testing.T) {
	for script, want := range map[string]string{"panic of pain": "panic: of pain", "goexit": "the call ended its goroutine"} {
		c := start(t, settings("camera"))
		a := ask(t, c, script)
		var remote *RemoteError
		if !errors.As(a.Err, &remote) || !strings.HasPrefix(remote.Text, want) || !bytes.Contains(remote.Stack, []byte("main_test.go")) {
			t.Errorf("%s: %v", script, a.Err)
		}
		<-c.Done()
		if e := exitOf(t, c.Err()); e.Exit.Code != exitPanic || e.Cause != nil {
			t.Errorf("%s: %v", script, e)
		}
		if _, err := Start(t.Context(), settings("camera|"+script)); !errors.As(err, &remote) || remote.Text != strings.TrimSpace(remote.Text) || remote.Stack == nil {
			t.Errorf("%s in Start: %v", script, err)
		}
		if exit, err := start(t, settings("camera|||"+script)).Close(); !errors.As(err, &remote) || exit.Code != exitPanic {
			t.Errorf("%s in Close: %v, %v", script, exit, err)
		}
	}
}

func TestStartFails(t *testing.T) {
	_, err := Start(t.Context(), settings("camera|return no camera"))
	var remote *RemoteError
	if !errors.As(err, &remote) || remote.Text != "no camera" || !strings.Contains(err.Error(), "camera|return no camera[1] did not start: no camera") {
		t.Errorf("%v", err)
	}
	_, err = Start(t.Context(), settings("camera|exit 3"))
	if e := exitOf(t, err); e.Exit.Code != 3 || !strings.HasSuffix(err.Error(), "[1] exited with code 3") {
		t.Errorf("%v", err)
	}
	slow := settings("camera|hang")
	slow.StartupTimeout = 1
	if _, err = Start(t.Context(), slow); !errors.Is(err, ErrStartup) || !strings.HasSuffix(err.Error(), ": 1ns") || exitOf(t, err).Exit.Signal != "SIGKILL" {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if _, err = Start(ctx, settings("camera")); err == nil || err.Error() != "enough" {
		t.Errorf("%v", err)
	}
	unknown := settings("camera")
	unknown.Hash = "hush"
	if _, err = Start(t.Context(), unknown); err == nil || !strings.Contains(err.Error(), "TakeOver") {
		t.Errorf("%v", err)
	}
}

// TestServe: Serve sends until a send returns ErrStopping, or until Stop ends its
// context. The parent gets the messages of one send together.
func TestServe(t *testing.T) {
	c := start(t, settings("camera"))
	var got []string
	err := c.Serve(func(sends iter.Seq[Send]) error {
		for s := range sends {
			got = append(got, fmt.Sprintf("%d %d %s", s.Edge, s.Instance, s.Payload))
		}
		if len(got) == 4 {
			return topo.ErrStopping
		}
		return nil
	})
	if err != topo.ErrStopping || strings.Join(got, ", ") != "0 1 0, 1 0 0, 1 2 1, 2 0 -1" {
		t.Errorf("%v, %v", got, err)
	}
	n := 0
	err = c.Serve(func(iter.Seq[Send]) error {
		if n++; n == 1000 {
			c.Stop()
		}
		return nil
	})
	if err != nil || n < 1000 {
		t.Errorf("after Stop: %v, %d messages", err, n)
	}
	if a := ask(t, c, "echo on"); string(a.Reply) != "7 -1 on" {
		t.Errorf("after Serve: %q", a.Reply)
	}
}

func TestCancel(t *testing.T) {
	c := start(t, settings("camera"))
	c.Stop() // has no effect on a call
	c.Cancel()
	if a := ask(t, c, "cancel"); a.Err != context.Canceled {
		t.Errorf("%v", a.Err)
	}
}

// TestAlive: OnAlive is called, but less often than topo.Alive.
func TestAlive(t *testing.T) {
	calls := 0
	s := settings("camera|alive")
	s.OnAlive = func() { calls++ }
	c := start(t, s)
	if calls == 0 {
		t.Error("OnAlive was not called during the start")
	}
	calls = 0
	ask(t, c, "alive")
	if calls == 0 || calls > 6 {
		t.Errorf("OnAlive was called %d times in 50 ms", calls)
	}
	calls = 0
	c.Serve(func(iter.Seq[Send]) error { return topo.ErrStopping })
	if calls != 1 {
		t.Errorf("OnAlive was called %d times for one send of Serve", calls)
	}
}
