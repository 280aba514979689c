package grpc

import (
	"fmt"
	"sync"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
)

// codec hands frames over as the bytes that they are: a mem.BufferSlice is sent, a
// *[]byte is received.
type codec struct{}

// codecName is in the content type, application/grpc+topogen.
const codecName = "topogen"

func init() { encoding.RegisterCodecV2(codec{}) }

func (codec) Name() string { return codecName }

func (codec) Marshal(v any) (mem.BufferSlice, error) {
	b, ok := v.(mem.BufferSlice)
	if !ok {
		return nil, fmt.Errorf("transport: %T is no frame", v)
	}
	return b, nil
}

func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	b, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("transport: a frame cannot be read into %T", v)
	}
	*b = data.Materialize() // a copy: payloads belong to their receivers
	return nil
}

// frames holds buffers for frames of small messages, between one and the next.
// gRPC's own pool clears a buffer each time, all of it.
var frames mem.BufferPool = framePool{new(sync.Pool)}

type framePool struct{ pool *sync.Pool }

// frameRoom is what a frame takes, but for messages that are large themselves.
const frameRoom = frameBytes + 16<<10

func (p framePool) Get(length int) *[]byte {
	if length > frameRoom {
		b := make([]byte, length)
		return &b
	}
	if b, ok := p.pool.Get().(*[]byte); ok {
		*b = (*b)[:length]
		return b
	}
	b := make([]byte, length, frameRoom)
	return &b
}

func (p framePool) Put(b *[]byte) {
	if cap(*b) == frameRoom {
		p.pool.Put(b)
	}
}
