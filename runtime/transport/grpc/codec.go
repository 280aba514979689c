package grpc

import (
	"fmt"
	"sync"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
)

// codec passes frames through without encoding: it sends a mem.BufferSlice and receives
// a *[]byte.
type codec struct{}

// codecName is in the content type, application/grpc+topogen.
const codecName = "topogen"

func init() { encoding.RegisterCodecV2(codec{}) }

func (codec) Name() string { return codecName }

func (codec) Marshal(v any) (mem.BufferSlice, error) {
	b, ok := v.(mem.BufferSlice)
	if !ok {
		return nil, fmt.Errorf("transport: a frame must be a mem.BufferSlice, got %T", v)
	}
	return b, nil
}

func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	b, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("transport: a frame must be read into a *[]byte, got %T", v)
	}
	*b = data.Materialize() // a copy, because payloads belong to their receivers
	return nil
}

// frames pools the buffers of frames of small messages. It replaces gRPC's own pool,
// which clears the whole buffer each time.
var frames mem.BufferPool = framePool{new(sync.Pool)}

type framePool struct{ pool *sync.Pool }

// frameRoom is the size of a pooled buffer. Frames with a large message do not use the
// pool.
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
