package engine

import (
	"context"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

type admissionKey struct{}

// WithAdmission returns a context whose operations are carried out only if admit returns
// true at that time. Otherwise they are refused with status 429. A server that has too many
// results in memory refuses the operations that have waited for their turn.
func WithAdmission(ctx context.Context, admit func() bool) context.Context {
	return context.WithValue(ctx, admissionKey{}, admit)
}

// admissionOf returns the function of [WithAdmission], or nil.
func admissionOf(ctx context.Context) func() bool {
	admit, _ := ctx.Value(admissionKey{}).(func() bool)
	return admit
}

// admitted reports whether a call may be carried out, and refuses it otherwise.
func (c *call) admitted() bool {
	if c.admit == nil || c.admit() {
		return true
	}
	c.refuse(protocol.TooMany, "too many bytes of responses are being sent, try again later")
	return false
}

// ResultBytes estimates the memory of the records in a result.
func ResultBytes(r *protocol.Result) (n int) {
	if r.Promise != nil {
		n += promiseBytes(r.Promise)
	}
	for _, list := range [][]protocol.Promise{r.Preload, r.Promises} {
		for i := range list {
			n += promiseBytes(&list[i])
		}
	}
	if r.Action != nil {
		n += ResultBytes(r.Action)
	}
	return n
}

func promiseBytes(p *protocol.Promise) int {
	return operationBytes + len(p.ID) + value(p.Param) + value(p.Value) + texts(p.Tags)
}
