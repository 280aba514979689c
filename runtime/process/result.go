package process

import (
	"cmp"
	"fmt"
	"iter"
)

// Answer is what a call of a handler came to, in one frame: a process that dies
// before the frame is complete has answered nothing.
type Answer struct {
	// Err is what the handler returned: nil, one of the errors of package topo
	// itself (Done, Idle, …), or a *RemoteError.
	Err error
	// Reply is what AnswerBuilder.Reply was given; nil where it was not called. It
	// is valid until the next call.
	Reply []byte
	// Holds is how many holds of the instance were not released when the call ended.
	Holds int
	sends []byte
}

// Send is a message that a handler sent. Edge and Instance are what the process
// says: whoever uses them as indices checks them.
type Send struct {
	Edge, Instance int
	Payload        []byte // valid until the next call
}

// Sends are the messages that the handler sent, in order. There are none beside an
// Err other than topo.Done and topo.Idle: what a handler sends before it fails is
// not sent.
func (a *Answer) Sends() iter.Seq[Send] {
	return func(yield func(Send) bool) {
		for f := (fields{rest: a.sends}); len(f.rest) > 0; {
			if !yield(f.send()) {
				return
			}
		}
	}
}

func (f *fields) send() Send {
	return Send{Edge: f.number(), Instance: f.number(), Payload: f.sized()}
}

// Bits of the byte behind the error of an answer: these parts follow.
const (
	answerReply = 1 << iota
	answerHolds
)

// decode reads the body of an answer: an error; what follows; the reply, the number
// of holds; sends until the end.
func (a *Answer) decode(body []byte) error {
	f := fields{rest: body}
	*a = Answer{Err: f.error()}
	parts := f.byte()
	if parts&answerReply != 0 {
		a.Reply = f.sized()
	}
	if parts&answerHolds != 0 {
		a.Holds = f.number()
	}
	a.sends = f.rest
	for len(f.rest) > 0 {
		f.send()
	}
	if f.broken || a.Holds < 0 {
		*a = Answer{}
		return fmt.Errorf("%w: an answer that ends too early", ErrProtocol)
	}
	return nil
}

// AnswerBuilder takes what a handler sends and replies during a call. It is used
// on the goroutine of the call alone.
type AnswerBuilder struct {
	sends, reply []byte
	replied      bool
	holds        int // of the instance, now
	limit        int // of all messages together; 0: the default
	size         int // that the sent ones count
}

// Send adds a message to an instance of the receiver of an edge. It copies the
// payload. When a call returns more than Info.MessageLimit in all, it fails with
// ErrTooLarge.
func (a *AnswerBuilder) Send(edge, instance int, payload []byte) {
	a.size += len(payload) + messageOverhead
	if a.size <= a.limitOrDefault() {
		a.sends = appendSized(appendNumber(appendNumber(a.sends, edge), instance), payload)
	}
}

// Reply sets the reply. It copies the payload.
func (a *AnswerBuilder) Reply(payload []byte) {
	a.reply, a.replied = append(a.reply[:0], payload...), true
}

func (a *AnswerBuilder) reset() {
	if cap(a.sends) > keepMax || cap(a.reply) > keepMax {
		*a = AnswerBuilder{limit: a.limit}
	}
	a.sends, a.replied, a.size, a.holds = a.sends[:0], false, 0, 0
}

func (a *AnswerBuilder) limitOrDefault() int { return cmp.Or(a.limit, MessageLimitDefault) }

// err is ErrTooLarge where the messages are more than an answer may hold.
func (a *AnswerBuilder) err() error {
	size := a.size
	if a.replied {
		size += len(a.reply) + messageOverhead
	}
	if size > a.limitOrDefault() {
		return fmt.Errorf("what the call sends and answers is %w", tooLarge(size, a.limitOrDefault()))
	}
	return nil
}

// appendBody appends the body of the answer to a call that returned err; kept says
// whether what it sent is to be sent nevertheless.
func (a *AnswerBuilder) appendBody(b []byte, err error, kept bool) []byte {
	b = appendError(b, err, nil)
	parts := byte(0)
	if a.replied && err == nil {
		parts |= answerReply
	}
	if a.holds > 0 {
		parts |= answerHolds
	}
	b = append(b, parts)
	if parts&answerReply != 0 {
		b = appendSized(b, a.reply)
	}
	if parts&answerHolds != 0 {
		b = appendNumber(b, a.holds)
	}
	if kept {
		b = append(b, a.sends...)
	}
	return b
}
