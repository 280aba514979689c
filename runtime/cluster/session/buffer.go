package session

// buffers are frames that were acknowledged and are used again, in two sizes: small ones
// for single messages, and full frames.
type buffers struct {
	small, full [][]byte
}

const (
	smallBytes = 1 << 10
	smallKept  = 256                         // some milliseconds of single messages
	fullKept   = WindowBytes / FrameBytesMax // as many as a window has
)

// take returns an empty buffer with room for n bytes, at most FrameBytesMax.
func (b *buffers) take(n int) []byte {
	list, size := &b.full, FrameBytesMax
	if n <= smallBytes {
		list, size = &b.small, smallBytes
	}
	last := len(*list) - 1
	if last < 0 {
		return make([]byte, 0, size)
	}
	f := (*list)[last]
	(*list)[last] = nil
	*list = (*list)[:last]
	return f
}

// give keeps a buffer of take.
func (b *buffers) give(f []byte) {
	switch {
	case cap(f) == FrameBytesMax && len(b.full) < fullKept:
		b.full = append(b.full, f[:0])
	case cap(f) == smallBytes && len(b.small) < smallKept:
		b.small = append(b.small, f[:0])
	}
}
