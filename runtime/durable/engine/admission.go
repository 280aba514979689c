package engine

import (
	"context"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

type admissionKey struct{}

// Admission bounds the memory of results. The engine calls it on the goroutine that carries
// out operations, one after the other, so the next operation is admitted only after the result of the
// previous one is counted.
type Admission interface {
	// Admit reports whether there is memory for a further result.
	Admit() bool
	// Made says how many bytes the results have. A later call replaces the number: a transaction may be
	// repeated. It may also come after the caller of Do has given up.
	Made(bytes int)
}

// WithAdmission returns a context whose operations are carried out only if a admits them at
// that time. Otherwise they are refused with status 429. Operations that only read need no
// admission.
func WithAdmission(ctx context.Context, a Admission) context.Context {
	return context.WithValue(ctx, admissionKey{}, a)
}

// admissionOf returns the Admission of [WithAdmission], or nil.
func admissionOf(ctx context.Context) Admission {
	a, _ := ctx.Value(admissionKey{}).(Admission)
	return a
}

// admitted reports whether a call may be carried out, and refuses it otherwise.
func (c *call) admitted() bool {
	if c.admission == nil || c.admission.Admit() {
		return true
	}
	c.refuse(protocol.TooMany, "too many bytes of responses are being sent, try again later")
	return false
}

// made counts the bytes of the results of a call.
func (c *call) made(bytes int) {
	if c.admission != nil {
		c.admission.Made(bytes)
	}
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
