package session

import "slices"

// Buffers has memory for frames. The sessions of a goroutine share it. It keeps frames that were
// acknowledged, to use them again, in two sizes: small ones for single messages, and full frames.
type Buffers struct {
	small, full [][]byte
	packed      []byte // the next frame is packed here. A frame that is not small keeps the buffer
}

const (
	smallBytes = 1 << 10
	smallKept  = 1024                            // some milliseconds of single messages
	fullKept   = 4 * WindowBytes / FrameBytesMax // as many as the windows of some sessions have
)

// begin returns an empty buffer with room for a frame. It is valid until the next call.
func (b *Buffers) begin() []byte {
	if b.packed == nil {
		b.packed = take(&b.full, FrameBytesMax)
	}
	return b.packed
}

// keep returns a frame that was packed in the buffer of begin, in memory of its own. Later, give
// may get the frame if reuse is true.
func (b *Buffers) keep(f []byte, reuse bool) []byte {
	switch {
	case !reuse:
		return slices.Clone(f)
	case len(f) <= smallBytes:
		return append(take(&b.small, smallBytes), f...)
	}
	b.packed = nil
	return f
}

// take returns the last buffer of a list, or a new one of a size.
func take(list *[][]byte, size int) []byte {
	last := len(*list) - 1
	if last < 0 {
		return make([]byte, 0, size)
	}
	f := (*list)[last]
	(*list)[last] = nil
	*list = (*list)[:last]
	return f
}

// give keeps a frame that nothing reads any more.
func (b *Buffers) give(f []byte) {
	switch {
	case cap(f) == FrameBytesMax && len(b.full) < fullKept:
		b.full = append(b.full, f[:0])
	case cap(f) == smallBytes && len(b.small) < smallKept:
		b.small = append(b.small, f[:0])
	}
}
