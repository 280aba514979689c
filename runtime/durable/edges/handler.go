package edges

import (
	"encoding/json"
	"fmt"
	"runtime/debug"

	"github.com/topogen/topogen/runtime/durable"
	"github.com/topogen/topogen/runtime/piper"
)

// A Handler passes the messages of one edge to the instances of its receiver. To makes one.
type Handler interface {
	// open decodes a message and finds its instance.
	open(arg json.RawMessage) (delivery, error)
}

// delivery is a message that was decoded.
type delivery struct {
	inbox   *Inbox
	unit    *piper.Unit
	run     durable.Handler
	message func() any // a copy of the message for a dead letter
}

// An Instance is one instance of a receiver, in generated code.
type Instance struct {
	Unit  *piper.Unit
	Inbox *Inbox
}

// To makes the Handler of an edge whose messages are of type M. route returns the index of
// the instance of a message, at returns the instance, and handle calls its handler. A route
// may return an index that does not exist.
func To[M any](instances int, route func(m *M) int, at func(i int) Instance, handle func(i int, ctx durable.Context, m *M) (any, error)) Handler {
	return &handler[M]{instances, route, at, handle}
}

type handler[M any] struct {
	instances int
	route     func(*M) int
	at        func(int) Instance
	handle    func(int, durable.Context, *M) (any, error)
}

func (h *handler[M]) open(arg json.RawMessage) (d delivery, err error) {
	defer failed(&err)
	m := new(M)
	if err := durable.Decode(arg, m); err != nil {
		return delivery{}, err
	}
	i := h.route(m)
	if i < 0 || i >= h.instances {
		return delivery{}, durable.Final(fmt.Errorf("%w: the message names an instance that does not exist: the processor has the instances 0 to %d", durable.ErrArgument, h.instances-1))
	}
	to := h.at(i)
	return delivery{
		inbox: to.Inbox, unit: to.Unit,
		run: func(ctx durable.Context, arg json.RawMessage) (any, error) {
			m := new(M) // a handler may change its message, and each attempt gets its own
			if err := durable.Decode(arg, m); err != nil {
				return nil, err
			}
			return h.handle(i, ctx, m)
		},
		message: func() any { return *m },
	}, nil
}

// LimitBy makes a limit apply to the executions with the same key.
func LimitBy[M any](l durable.Limit, key func(m *M) string) durable.Limit {
	l.Key = func(arg json.RawMessage) (value string, err error) {
		defer failed(&err)
		m := new(M)
		if err := durable.Decode(arg, m); err != nil {
			return "", err
		}
		return key(m), nil
	}
	return l
}

// failed makes an error of a panic of a message's own methods: of its key, of the field of a
// limit, or of UnmarshalJSON. The panic would otherwise end each process that gets the message
// from the store. No further attempt can succeed, because the message is the same.
func failed(err *error) {
	if v := recover(); v != nil {
		*err = durable.Final(fmt.Errorf("%w: a method of the message failed: %w", durable.ErrArgument, &durable.PanicError{Value: v, Stack: debug.Stack()}))
	}
}
