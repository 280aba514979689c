// Package clusterretries has handlers that fail with messages of other nodes.
package clusterretries

import (
	"errors"
	"fmt"
	"time"

	"github.com/topogen/topogen/runtime/topo"
)

type (
	// Plain is a message. Every third one cannot be handled.
	Plain struct {
		N  int
		By string
	}
	// Box is a message that can be handled at the second attempt.
	Box struct {
		N  int
		By string
	}
	// Query asks for an answer.
	Query struct {
		N  int
		By string
	}
	// Answer is its reply.
	Answer struct{ N, Attempts int }
)

// Messages is how many of each a source sends. The last one does not fail.
const Messages = 61

var errThird = errors.New("every third message fails")

func third(n int) error {
	if n%3 == 0 {
		return errThird
	}
	return nil
}

// Source sends messages.
type Source struct {
	by string
	n  int
}

// NewSource makes a source.
func NewSource(in topo.Instance) *Source { return &Source{by: fmt.Sprint("source", in.Index)} }

// Ping sends one along each edge.
func (s *Source) Ping(out *SourceSender) error {
	if s.n == Messages {
		return topo.Done
	}
	s.n++
	return errors.Join(out.SendPlain(Plain{s.n, s.by}), out.SendBox(Box{s.n, s.by}))
}

// Log counts what was handled, and the calls that failed.
type Log struct{ Plain, Box, Failed int }

// Retries handles each message up to three times.
type Retries struct {
	Log
	attempts map[string]int // by message
}

// attempt is the number of the attempt with a message.
func (r *Retries) attempt(message string) int {
	if r.attempts == nil {
		r.attempts = make(map[string]int)
	}
	r.attempts[message]++
	return r.attempts[message]
}

// ReceivePlain fails with every third message.
func (r *Retries) ReceivePlain(m Plain) error {
	if err := third(m.N); err != nil {
		r.Failed++
		return err
	}
	r.Plain++
	return nil
}

// ReceiveBox succeeds at the second attempt.
func (r *Retries) ReceiveBox(m *Box) error {
	if r.attempt(fmt.Sprint("box ", m.N, m.By)) == 1 {
		return errors.New("the first attempt fails")
	}
	r.Box++
	return nil
}

// ReceiveQuery answers at the third attempt, or never.
func (r *Retries) ReceiveQuery(m *Query) (Answer, error) {
	n := r.attempt(fmt.Sprint("query ", m.N, m.By))
	if n < 3 || third(m.N) != nil {
		return Answer{}, errThird
	}
	return Answer{m.N, n}, nil
}

// Skips handles each message once.
type Skips struct{ Log }

// ReceivePlain fails with every third message.
func (s *Skips) ReceivePlain(m *Plain) error {
	if err := third(m.N); err != nil {
		s.Failed++
		return err
	}
	s.Plain++
	return nil
}

// ReceiveBox takes a message.
func (s *Skips) ReceiveBox(Box) { s.Box++ }

// ReceiveTick never gets a tick.
func (s *Skips) ReceiveTick(topo.Tick) {}

// Stops is restarted after each failure.
type Stops struct{}

// ReceivePlain fails with every third message.
func (s *Stops) ReceivePlain(m Plain) error { return third(m.N) }

// ReceiveQuery panics with every third message.
func (s *Stops) ReceiveQuery(m Query) Answer {
	if err := third(m.N); err != nil {
		panic(err)
	}
	return Answer{m.N, 1}
}

// Watches is restarted, has a health timeout and observes its input.
type Watches struct {
	Closed int
	Hang   time.Duration // how long the last message of each source takes
}

// ReceivePlain passes a message on. With every third one it fails afterwards.
func (w *Watches) ReceivePlain(m Plain, out *WatchesSender) error {
	if m.N == Messages {
		time.Sleep(w.Hang)
	}
	out.SendBox(Box{m.N, "watches"})
	return third(m.N)
}

// InputClosed is called when the sources of all nodes have ended.
func (w *Watches) InputClosed(WatchesInput) { w.Closed++ }

// GivesUp fails with its first messages and is then not restarted any more.
type GivesUp struct{}

// ReceivePlain fails.
func (g *GivesUp) ReceivePlain(Plain) error { return errThird }

// Morgue gets the dead letters of its node.
type Morgue struct {
	Letters map[string]int
	Wrong   []string
}

// ReceiveDeadLetter takes a message that was given up.
func (x *Morgue) ReceiveDeadLetter(d topo.DeadLetter) {
	if x.Letters == nil {
		x.Letters = make(map[string]int)
	}
	n := 0
	for _, of := range []func(topo.DeadLetter) (Plain, bool){DeadLetterSourceRetriesPlain, DeadLetterSourceSkipsPlain, DeadLetterSourceStopsPlain} {
		if m, ok := of(d); ok {
			n = m.N
		}
	}
	for _, of := range []func(topo.DeadLetter) (Query, bool){DeadLetterApiRetriesQuery, DeadLetterApiStopsQuery} {
		if m, ok := of(d); ok {
			n = m.N
		}
	}
	if n%3 != 0 || n == 0 {
		x.Wrong = append(x.Wrong, fmt.Sprintf("%+v", d))
	}
	x.Letters[fmt.Sprintf("%s %s %d", d.Processor, d.Message, d.Attempts)]++
}
