package piper

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/topogen/topogen/runtime/topo"
)

// Encode appends a message to b, which must not become longer than limit.
type Encode[M any] = func(b []byte, m *M, limit int) ([]byte, error)

// EncodeRequest returns the Encode of requests whose receiving instance runs on another
// node. An encoded request begins with the number of its call as a varint, which is 0 if
// no caller waits for the reply. decode decodes the reply into a zero value. If the
// message cannot be encoded, the caller gets topo.ErrFailed.
func EncodeRequest[M, R any](o *Outlet, encode Encode[M], decode func(b []byte, reply *R) error) Encode[Request[M, R]] {
	return func(b []byte, r *Request[M, R], limit int) ([]byte, error) {
		if r.call == nil {
			return encode(append(b, 0), &r.Message, limit)
		}
		number := o.addCall(r.call.atOther(o, decode))
		r.call = nil
		b, err := encode(binary.AppendUvarint(b, number), &r.Message, limit)
		if err == nil && len(b) > limit {
			err = fmt.Errorf("it has more than %d bytes", o.Limit())
		}
		if err != nil {
			o.failCall(number, fmt.Errorf("a message (%T) cannot be encoded: %w", r.Message, err))
		}
		return b, err
	}
}

// atOther returns the part of a call that waits for the reply of other nodes.
func (c *call[R]) atOther(o *Outlet, decode func(b []byte, reply *R) error) remoteCall {
	if g := c.gathering; g != nil && o.ToInstance == OnAllOthers {
		return &castCall[R]{g, c.part, o.unit.proc.instances(), decode}
	}
	return &singleCall[R]{c, decode}
}

// singleCall waits for the reply of one instance.
type singleCall[R any] struct {
	call   *call[R]
	decode func(b []byte, reply *R) error
}

func (s *singleCall[R]) several() bool { return false }
func (s *singleCall[R]) reaches(int)   {}

func (s *singleCall[R]) reply(_ string, b []byte, err error) {
	var out outcome[R]
	if err != nil {
		out.err = callError(err)
	} else if err := s.decode(b, &out.answer); err != nil {
		out.err = undecodable(err)
	}
	s.call.end(out)
}

func (s *singleCall[R]) end(dropped error) {
	if dropped == nil {
		dropped = errNoReply
	}
	s.call.end(outcome[R]{err: callError(dropped)})
}

// callError is the error of a call whose request or reply was lost on another node.
func callError(err error) error {
	switch {
	case errors.Is(err, topo.ErrFull):
		return topo.ErrFull
	case errors.Is(err, topo.ErrFailed):
		return err
	}
	return fmt.Errorf("%w: %w", topo.ErrFailed, err)
}

func undecodable(err error) error {
	return fmt.Errorf("%w: the reply of another node cannot be decoded: %w", topo.ErrFailed, err)
}

// RemoteRequest wraps a message of another node, which has arrived at the guest u, for the
// queue. encode encodes its reply. If reply is nil, no caller waits. An error that ends the
// request is sent in place of the reply.
func RemoteRequest[M, R any](u *Unit, m M, encode Encode[R], reply ReplyTo) Request[M, R] {
	if reply == nil {
		return Request[M, R]{Message: m}
	}
	limit := u.proc.pool.crossingLimit()
	return Request[M, R]{m, &call[R]{remote: func(o outcome[R]) {
		if o.err != nil {
			reply(nil, o.err)
			return
		}
		b, err := encode(nil, &o.answer, limit)
		if err == nil && len(b) > limit {
			err = fmt.Errorf("it has more than %d bytes", limit)
		}
		if err != nil {
			reply(nil, fmt.Errorf("a reply (%T) cannot be encoded: %w", o.answer, err))
			return
		}
		reply(b, nil)
	}}}
}

// UnknownEdge is the error of a guest for a message of an edge that does not lead to
// other nodes.
func UnknownEdge(edge int) error {
	return fmt.Errorf("messages of the edge with index %d never come from another node", edge)
}
