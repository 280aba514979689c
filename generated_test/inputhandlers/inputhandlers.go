// Package inputhandlers has processors with methods for changes of their inputs.
package inputhandlers

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/topogen/topogen/runtime/topo"
)

type (
	Word        string
	Page[T any] struct{ Of T }
)

var ErrTold = errors.New("told to fail")

// notes records the calls, and has functions that run at a call.
type notes struct {
	mu   sync.Mutex
	List []string
	Does map[string]func() error // run when a note is written for the first time
}

var Heard notes

// Do sets the function of a note while the topology runs.
func (n *notes) Do(text string, do func() error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.Does[text] = do
}

func note(who, format string, args ...any) error {
	text := who + " " + fmt.Sprintf(format, args...)
	Heard.mu.Lock()
	Heard.List = append(Heard.List, text)
	do := Heard.Does[text]
	delete(Heard.Does, text)
	Heard.mu.Unlock()
	if do != nil {
		return do()
	}
	return nil
}

// Feed executes steps. A restarted instance continues with the remaining steps.
type Feed struct {
	Steps *[]func(out *FeedSender) error
}

func (f *Feed) Serve(ctx context.Context, out *FeedSender) error {
	for f.Steps != nil && len(*f.Steps) > 0 {
		step := (*f.Steps)[0]
		*f.Steps = (*f.Steps)[1:]
		if err := step(out); err != nil {
			return err
		}
	}
	return nil
}

// Plain has the shortest forms of the methods, by value.
type Plain struct{ Tracker *PlainInputs }

func (p *Plain) Inputs(in *PlainInputs)               { p.Tracker = in }
func (p Plain) ReceiveWordFromFeed(m Word)            { note("plain", "feed %s %v", m, p.Tracker.Closed()) }
func (p Plain) ReceiveWordFromOther(m Word)           { note("plain", "other %s %v", m, p.Tracker.Closed()) }
func (p Plain) ReceivePage(m Page[int])               { note("plain", "page %d", m.Of) }
func (p Plain) ReceiveTick(t topo.Tick)               {}
func (p Plain) InputClosed(in PlainInput)             { note("plain", "closed %v", in) }
func (p Plain) InputRecovered(in PlainInput)          { note("plain", "recovered %v", in) }
func (p Plain) ProcessorRestarted(who ProcessorIndex) { note("plain", "restarted %v", who) }
func (p Plain) AllInputsClosed()                      { note("plain", "all closed") }
func (p Plain) Finish()                               { note("plain", "finish") }

// Full has the longest forms of the methods, by pointer.
type Full struct{}

func (f *Full) ReceiveWord(ctx context.Context, m *Word, out *FullSender) error { return nil }
func (f *Full) InputClosed(ctx context.Context, in FullInput, out *FullSender) error {
	note("full", "closed %v", in)
	return out.SendWord(Word("closed " + in.String()))
}
func (f *Full) InputRecovered(ctx context.Context, in FullInput, out *FullSender) error {
	note("full", "recovered %v", in)
	return out.SendWord(Word("recovered " + in.String()))
}
func (f *Full) ProcessorRestarted(ctx context.Context, p ProcessorIndex, out *FullSender) error {
	return out.SendWord(Word("restarted " + p.String()))
}
func (f *Full) AllInputsClosed(ctx context.Context, out *FullSender) error {
	return out.SendWord("all closed")
}

// Skips returns an error from each of the methods.
type Skips struct{ in *SkipsInputs }

func (s *Skips) Inputs(in *SkipsInputs)          { s.in = in; _ = note("inputs", "skips") }
func (s *Skips) ReceiveWord(m *Word) error       { return note("skips", "word %s", *m) }
func (s *Skips) ReceivePage(m *Page[int]) error  { return note("skips", "page %d", m.Of) }
func (s *Skips) InputClosed(in SkipsInput) error { note("skips", "closed %v", in); return ErrTold }
func (s *Skips) InputRecovered(in SkipsInput) error {
	note("skips", "recovered %v", in)
	return ErrTold
}
func (s *Skips) ProcessorRestarted(ProcessorIndex) error { note("skips", "restarted"); return ErrTold }
func (s *Skips) AllInputsClosed() error                  { note("skips", "all closed"); return ErrTold }

// Breaks runs a function of the test in each of the methods.
type Breaks struct{ words int }

func (b *Breaks) Inputs(*BreaksInputs) { _ = note("inputs", "breaks") }

func (b *Breaks) ReceiveWord(m *Word) {
	b.words++
	note("breaks", "word %s, its %dth", *m, b.words)
}
func (b *Breaks) InputClosed(in BreaksInput) error          { return note("breaks", "closed %v", in) }
func (b *Breaks) InputRecovered(in BreaksInput) error       { return note("breaks", "recovered %v", in) }
func (b *Breaks) ProcessorRestarted(p ProcessorIndex) error { return note("breaks", "restarted %v", p) }
func (b *Breaks) AllInputsClosed() error                    { return note("breaks", "all closed") }
func (b *Breaks) Close() error                              { return note("breaks", "close") }

// Ring sends to itself.
type Ring struct{}

func (r *Ring) ReceiveWord(m Word, out *RingSender)       { out.SendPage(Page[int]{2}) }
func (r *Ring) InputClosed(in RingInput, out *RingSender) { note("ring", "closed %v", in) }
func (r *Ring) AllInputsClosed()                          { note("ring", "all closed") }
func (r *Ring) Finish()                                   { note("ring", "finish") }
func (r *Ring) ProcessorRestarted(p ProcessorIndex) error { return note("ring", "restarted %v", p) }
func (r *Ring) ReceivePage(m Page[int], out *RingSender) {
	note("ring", "page %d", m.Of)
	if m.Of > 0 {
		out.SendPage(Page[int]{m.Of - 1})
	}
}

// Deaf has none of the methods, although its inputs are supervised.
type Deaf struct{}

func (d *Deaf) ReceiveWord(m Word) error { return note("deaf", "word %s", m) }

// Sink takes what others send.
type Sink struct{ Words []Word }

func (s *Sink) ReceiveWord(m Word)     { s.Words = append(s.Words, m) }
func (s *Sink) ReceiveNumbers(m []int) { note("sink", "page %d", m) }
