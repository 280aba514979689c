package border

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/topo"
)

// Encode appends a message to b, which must not become longer than limit.
type Encode[M any] = func(b []byte, m *M, limit int) ([]byte, error)

// EncodeRequest returns the Encode of requests whose receiving instance runs on another
// node. An encoded request begins with the number of its call as a varint, which is 0 if
// no caller waits for the reply. decode decodes the reply into a zero value. If the
// message cannot be encoded, the caller gets topo.ErrFailed.
func EncodeRequest[M, R any](o *Outlet, encode Encode[M], decode func(b []byte, reply *R) error) Encode[piper.Request[M, R]] {
	return func(b []byte, r *piper.Request[M, R], limit int) ([]byte, error) {
		w, ok := r.TakeWaiter()
		if !ok {
			return encode(append(b, 0), &r.Message, limit)
		}
		number := o.addCall(callOf(w, o, decode))
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

// callOf returns the part of a call that waits for the reply of other nodes.
func callOf[R any](w piper.Waiter[R], o *Outlet, decode func(b []byte, reply *R) error) remoteCall {
	if g, part := w.Gathering(); g != nil && o.ToInstance == OnAllOthers {
		return &castCall[R]{g, part, o.border.Instances(o.To), decode}
	}
	return &singleCall[R]{w, decode}
}

// singleCall waits for the reply of one instance.
type singleCall[R any] struct {
	waiter piper.Waiter[R]
	decode func(b []byte, reply *R) error
}

func (s *singleCall[R]) several() bool { return false }
func (s *singleCall[R]) waits() bool   { return s.waiter.Waits() }
func (s *singleCall[R]) gaveUp() bool  { return !s.waits() }

// reaches ends a part of a Gathering whose request goes to no instance.
func (s *singleCall[R]) reaches(nodes int) {
	if g, part := s.waiter.Gathering(); g != nil && nodes == 0 {
		g.Expect(part, 0)
	}
}

func (s *singleCall[R]) reply(_ string, b []byte, err error) {
	var reply R
	if err != nil {
		err = callError(err)
	} else if err = s.decode(b, &reply); err != nil {
		err = undecodable(err)
	}
	s.waiter.End(reply, err)
}

func (s *singleCall[R]) end(dropped error) {
	if dropped == nil {
		dropped = errNoReply
	}
	var none R
	s.waiter.End(none, callError(dropped))
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
func RemoteRequest[M, R any](u *piper.Unit, m M, encode Encode[R], reply ReplyTo) piper.Request[M, R] {
	if reply == nil {
		return piper.NoReply[M, R](m)
	}
	limit := of(u.Border()).limit()
	return piper.RequestWith(m, func(answer R, err error) {
		if err != nil {
			reply(nil, err)
			return
		}
		b, err := encode(nil, &answer, limit)
		if err == nil && len(b) > limit {
			err = fmt.Errorf("it has more than %d bytes", limit)
		}
		if err != nil {
			reply(nil, fmt.Errorf("a reply (%T) cannot be encoded: %w", answer, err))
			return
		}
		reply(b, nil)
	})
}

// UnknownEdge is the error of a guest for a message of an edge that does not lead to
// other nodes.
func UnknownEdge(edge int) error {
	return fmt.Errorf("messages of the edge with index %d never come from another node", edge)
}

// castCall is the part of a Gathering whose request goes to the instances of all other
// nodes.
type castCall[R any] struct {
	gathering *piper.Gathering[R]
	part      int
	instances int // on each node
	decode    func(b []byte, reply *R) error
}

func (c *castCall[R]) several() bool { return true }
func (c *castCall[R]) waits() bool   { return c.gathering.Waits() }
func (c *castCall[R]) gaveUp() bool  { return c.gathering.GaveUp() }

func (c *castCall[R]) reaches(nodes int) { c.gathering.Expect(c.part, nodes*c.instances) }

func (c *castCall[R]) reply(node string, b []byte, err error) {
	if err != nil {
		c.gathering.Miss(c.part, callError(err))
		return
	}
	instance, n := binary.Uvarint(b)
	if n <= 0 || instance >= uint64(c.instances) {
		c.gathering.Miss(c.part, undecodable(errTruncated))
		return
	}
	var reply R
	if err := c.decode(b[n:], &reply); err != nil {
		c.gathering.Miss(c.part, undecodable(err))
		return
	}
	c.gathering.Add(c.part, node, int(instance), reply)
}

func (c *castCall[R]) end(dropped error) {
	if dropped != nil {
		c.gathering.Miss(c.part, callError(dropped))
	}
	c.gathering.EndPart(c.part, callError(errNoReply))
}
