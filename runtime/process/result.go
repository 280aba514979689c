package process

import (
	"cmp"
	"fmt"
	"iter"
)

// Answer is the result of one call. It travels in one frame, so a process that dies
// before the frame is complete has sent no part of it.
type Answer struct {
	// Err is the error that the handler returned: nil, one of the errors of package topo
	// itself (Done, Idle, …), or a *RemoteError.
	Err error
	// Reply is the payload that was given to AnswerBuilder.Reply, or nil if Reply was not
	// called. It is valid until the next call.
	Reply []byte
	// Holds is the number of the instance's holds that were not released when the call
	// ended.
	Holds int
	sends []byte
}

// Send is a message that a handler sent. Edge and Instance come from the process and are
// not checked: check them before you use them as indices.
type Send struct {
	Edge, Instance int
	Payload        []byte // valid until the next call
}

// Sends iterates over the messages that the handler sent, in order. There are none if the
// handler failed: its messages are discarded. topo.Done and topo.Idle of a Ping are not
// failures.
func (a *Answer) Sends() iter.Seq[Send] { return sendsIn(a.sends) }

// sendsIn iterates over encoded messages.
func sendsIn(encoded []byte) iter.Seq[Send] {
	return func(yield func(Send) bool) {
		for f := (fields{rest: encoded}); len(f.rest) > 0; {
			if !yield(f.send()) {
				return
			}
		}
	}
}

func (f *fields) send() Send {
	return Send{Edge: f.number(), Instance: f.number(), Payload: f.sized()}
}

// skipSends reads messages up to the end.
func (f *fields) skipSends() {
	for len(f.rest) > 0 {
		f.send()
	}
}

// Bits of the byte that follows the error in an answer: the parts that come next.
const (
	answerReply = 1 << iota
	answerHolds
)

// decode reads the body of an answer: an error, the byte of parts, the reply, the number
// of holds, and the messages up to the end.
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
	f.skipSends()
	if f.broken || a.Holds < 0 {
		*a = Answer{}
		return fmt.Errorf("%w: the answer is truncated", ErrProtocol)
	}
	return nil
}

// AnswerBuilder collects the messages and the reply of a handler during a call, or the
// messages of a send of Serve. Only one goroutine may use it at a time.
type AnswerBuilder struct {
	sends, reply []byte
	replied      bool
	holds        int // number of holds that the instance has now
	limit        int // for all messages together; 0: the default
	size         int // of the messages that were sent, overhead included
}

// Send adds a message for an instance of the edge's receiver. It copies the payload. A
// call whose messages exceed Info.MessageLimit in total fails with ErrTooLarge.
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

// err returns ErrTooLarge, with the name of the contents, if the messages and the reply
// exceed the limit of an answer.
func (a *AnswerBuilder) err(what string) error {
	size := a.size
	if a.replied {
		size += len(a.reply) + messageOverhead
	}
	if size > a.limitOrDefault() {
		return fmt.Errorf("%s: %w", what, tooLarge(size, a.limitOrDefault()))
	}
	return nil
}

// appendBody appends the body of the answer to a call that returned err. The messages are
// included only if kept is true.
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
