package session_test

import (
	"fmt"
	"testing"

	"github.com/topogen/topogen/runtime/cluster/session"
)

// BenchmarkOneWay sends chunks of 64-byte messages from one session to another in the same
// goroutine. The time is that of one 64-byte message.
func BenchmarkOneWay(b *testing.B) {
	for _, reuse := range []bool{true, false} {
		for _, chunk := range []int{1, 32, 128} {
			benchmarkOneWay(b, reuse, chunk)
		}
	}
}

func benchmarkOneWay(b *testing.B, reuse bool, chunk int) {
	b.Run(fmt.Sprintf("reuse=%v/chunk=%d", reuse, chunk), func(b *testing.B) {
		p := newPair(b, func(c *session.Config) { c.ReuseFrames = reuse })
		m := make([]byte, 64*chunk)
		const burst = 1024 // messages in the queue before the driver sends frames
		b.SetBytes(64)
		b.ReportAllocs()
		n := 0
		for n < b.N {
			for range max(burst/chunk, 1) {
				_ = p.ends[0].Send(100, m)
				n += chunk
			}
			p.now += 1000
			p.got[1] = p.got[1][:0]
			for p.pass(0) {
			}
			for p.pass(1) {
			}
		}
		b.StopTimer()
		p.settle()
		if v := p.ends[1].Stats(); v.MessagesReceived != uint64(n/chunk) {
			b.Fatalf("%d messages of %d", v.MessagesReceived, n/chunk)
		}
	})
}

// BenchmarkRoundTrip sends one 64-byte message and its answer, each in a frame.
func BenchmarkRoundTrip(b *testing.B) {
	p := newPair(b, func(c *session.Config) { c.ReuseFrames = true })
	m := make([]byte, 64)
	b.ReportAllocs()
	for b.Loop() {
		for end := range 2 {
			_ = p.ends[end].Send(100, m)
			p.got[1-end] = p.got[1-end][:0]
			for p.pass(end) {
			}
		}
		p.now += 1000
	}
}
