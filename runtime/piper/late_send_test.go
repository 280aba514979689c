package piper_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/topogen/topogen/runtime/internal/race"
	"github.com/topogen/topogen/runtime/piper"
)

// TestALateSendFailsATest has a handler that starts a goroutine which sends after the
// handler has returned. In a test Run must end with an error that has the stack of the
// send. The send must be counted, and logged once.
func TestALateSendFailsATest(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector would report the late send")
	}
	for _, stepped := range []bool{false, true} {
		var log journal
		returned, sent := make(chan struct{}), make(chan struct{})
		top := build(t, []proc{
			{external: true},
			{name: "leaks", receive: func(c *cell, _ *message) error {
				go func() {
					<-returned
					for range 1000 {
						c.put(target{1, 0}, message{})
					}
					close(sent)
				}()
				return nil
			}},
			{},
		}, []edge{{from: 0, to: 1}, {from: 1, to: 2, capacity: 100}}, log.option(), piper.Workers(1))
		if err := top.externals[0].caller().send(t.Context(), 0, 0, message{}); err != nil {
			t.Fatal(err)
		}
		var err error
		if stepped {
			s := top.pool.Stepper(1)
			if err := s.Run(); err != nil {
				t.Fatal(err)
			}
			close(returned)
			<-sent
			top.externals[0].Close()
			s.Run()
			err = s.Err()
		} else {
			result := top.start(t.Context())
			until(t, func() bool { return top.graph().Edge(0).Received() == 1 && piper.Idle(top.pool) })
			close(returned)
			<-sent
			top.externals[0].Close()
			err = top.result(t, result)
		}
		if !errors.Is(err, piper.ErrLateSend) || !strings.Contains(err.Error(), `processor "leaks"`) || !strings.Contains(err.Error(), "late_send_test.go") {
			t.Errorf("stepped %v: Run returns %v", stepped, err)
		}
		if f := top.pool.Snapshot().Edges[1]; f.Late != 1000 || f.Sent != 1000 || f.Sent != f.Received+f.Dropped+uint64(f.Len) {
			t.Errorf("stepped %v: %+v", stepped, f)
		}
		if n := log.count("after the handler call of its sender had ended"); n != 1 || log.count("late_send_test.go") == 0 {
			t.Errorf("the late send was logged %d times, want 1: %s", n, log.buf.String())
		}
	}
}

// TestALateSendToTheLatest checks that such a message is dropped and counted, because
// the receiver would not be woken.
func TestALateSendToTheLatest(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector would report the late send")
	}
	returned, sent := make(chan struct{}), make(chan struct{})
	top := build(t, []proc{
		{external: true},
		{receive: func(c *cell, _ *message) error {
			go func() {
				<-returned
				for range 10 {
					c.put(target{1, 0}, message{})
				}
				close(sent)
			}()
			return nil
		}},
		{},
	}, []edge{{from: 0, to: 1}, {from: 1, to: 2, full: dropOldest}}, new(journal).option(), piper.Workers(1))
	if err := top.externals[0].caller().send(t.Context(), 0, 0, message{}); err != nil {
		t.Fatal(err)
	}
	result := top.start(t.Context())
	until(t, func() bool { return top.graph().Edge(0).Received() == 1 && piper.Idle(top.pool) })
	close(returned)
	<-sent
	if err := top.result(t, result); !errors.Is(err, piper.ErrLateSend) {
		t.Errorf("Run returns %v", err)
	}
	if f := top.pool.Snapshot().Edges[1]; f.Late != 10 || f.Sent != 10 || f.Dropped != 10 {
		t.Errorf("%+v", f)
	}
}

// TestALateSendDoesNotPauseItsSender has late sends that fill a queue, outside of
// tests. The next call must be able to send, and all late messages must arrive with its
// message.
func TestALateSendDoesNotPauseItsSender(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector would report the late send")
	}
	defer piper.Lenient()()
	const late = 1000
	returned, sent := make(chan struct{}), make(chan struct{})
	calls := 0
	top := build(t, []proc{
		{external: true},
		{receive: func(c *cell, _ *message) error {
			if calls++; calls > 1 {
				return c.send(1, 0, message{})
			}
			go func() {
				<-returned
				for range late {
					c.put(target{1, 0}, message{})
				}
				close(sent)
			}()
			return nil
		}},
		{},
	}, []edge{{from: 0, to: 1}, {from: 1, to: 2, capacity: 100}}, new(journal).option(), piper.Workers(1))
	g := top.externals[0].caller()
	if err := g.send(t.Context(), 0, 0, message{}); err != nil {
		t.Fatal(err)
	}
	result := top.start(t.Context())
	until(t, func() bool { return top.graph().Edge(0).Received() == 1 && piper.Idle(top.pool) })
	close(returned)
	<-sent
	if err := g.send(t.Context(), 0, 0, message{}); err != nil {
		t.Fatal(err)
	}
	top.externals[0].Close()
	if err := top.result(t, result); err != nil {
		t.Errorf("Run returns %v", err)
	}
	if f := top.pool.Snapshot().Edges[1]; f.Late != late || f.Received != late+1 {
		t.Errorf("%+v", f)
	}
}
