package grpc

import (
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/transport"
)

// sequences checks that the numbers of each group arrive in order, each at most once.
// It counts the gaps.
type sequences struct {
	t    *testing.T
	mu   sync.Mutex
	next map[uint64]uint64 // by group
	gaps map[uint64]int
	all  int
}

func newSequences(t *testing.T) *sequences {
	return &sequences{t: t, next: map[uint64]uint64{}, gaps: map[uint64]int{}}
}

func (s *sequences) receive(group uint64) func(string, [][]byte) {
	return func(_ string, payloads [][]byte) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, p := range payloads {
			n := binary.BigEndian.Uint64(p)
			switch {
			case n < s.next[group]:
				s.t.Errorf("group %d: message %d of %d bytes after message %d", group, n, len(p), s.next[group]-1)
			case n > s.next[group]:
				s.gaps[group]++
			}
			s.next[group] = n + 1
			s.all++
		}
	}
}

func (s *sequences) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all
}

// TestOrderOfAllSizes: messages of one group arrive in the order in which they were
// sent, in one frame or in chunks, and none is dropped.
func TestOrderOfAllSizes(t *testing.T) {
	t.Parallel() // it waits for messages
	both(t, func(t *testing.T, p *pki) {
		a, b := start(t, p.config(t, "n1")), start(t, p.config(t, "n2"))
		s := newSequences(t)
		const groups = 3
		count := speed.Pick(t, 100, 200, 2000)
		for g := range uint64(groups) {
			b.Handle(g, s.receive(g))
		}
		meet(t, a, b)
		rng := rand.New(rand.NewPCG(1, 2))
		sizes := []int{8, 8, 8, 64 << 10, 300 << 10, chunkBytes, wholeBytesMax, wholeBytesMax + 1, 3 * chunkBytes}
		var next [groups]uint64
		for sent := range count {
			g := rng.IntN(groups)
			payload := make([]byte, sizes[rng.IntN(len(sizes))])
			binary.BigEndian.PutUint64(payload, next[g])
			next[g]++
			await(t, "room in the queue", func() bool { return sent-s.count() < 60 })
			a.Send("n2", transport.Message{Group: uint64(g), Payload: payload})
		}
		await(t, "all messages", func() bool { return s.count() == count })
		if st := a.Stats(); st.Dropped != 0 || len(s.gaps) > 0 {
			t.Errorf("%d messages were dropped; gaps: %v", st.Dropped, s.gaps)
		}
	})
}

// breaker is a proxy for an address, whose connections the test can cut.
type breaker struct {
	listener net.Listener
	mu       sync.Mutex
	open     []net.Conn
}

func newBreaker(t *testing.T, to string) *breaker {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &breaker{listener: l}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				near.Close()
				continue
			}
			b.mu.Lock()
			b.open = append(b.open, near, far)
			b.mu.Unlock()
			running.Go(func() { io.Copy(far, near); far.Close() })
			running.Go(func() { io.Copy(near, far); near.Close() })
		}
	})
	t.Cleanup(func() {
		l.Close()
		b.cut()
		running.Wait()
	})
	return b
}

func (b *breaker) cut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, conn := range b.open {
		conn.Close()
	}
	b.open = nil
}

// TestOrderThroughReconnects: while connections break again and again, messages arrive
// in order and at most once. They are missing only where a connection broke.
func TestOrderThroughReconnects(t *testing.T) {
	t.Parallel() // it waits for new connections
	both(t, func(t *testing.T, p *pki) {
		const groups = 3
		cuts, each := speed.Pick(t, 2, 5, 50), speed.Pick(t, 60, 120, 120)
		a, b := start(t, p.config(t, "n1")), start(t, p.config(t, "n2"))
		s := newSequences(t)
		for g := range uint64(groups) {
			b.Handle(g, s.receive(g))
		}
		b.SetPeer("n1", a.Addr().String()) // keeps the peer, and so the number of its streams
		way := newBreaker(t, b.Addr().String())
		a.SetPeer("n2", way.listener.Addr().String())
		rng := rand.New(rand.NewPCG(3, 4))
		sizes := []int{8, 8, 8, 8, 8, 100 << 10, wholeBytesMax, wholeBytesMax + 1, 3 * chunkBytes}
		var next [groups]uint64
		send := func(g int, size int) {
			payload := make([]byte, size)
			binary.BigEndian.PutUint64(payload, next[g])
			next[g]++
			a.Send("n2", transport.Message{Group: uint64(g), Payload: payload})
		}
		for range cuts {
			await(t, "the node to be connected", func() bool { return connected(a, b) })
			for range each {
				await(t, "room in the queue", func() bool { return a.Stats().Peers[0].Queued < 40 })
				send(rng.IntN(groups), sizes[rng.IntN(len(sizes))])
			}
			way.cut()
		}
		for g := range groups {
			await(t, "messages to arrive again", func() bool {
				send(g, 8)
				s.mu.Lock()
				defer s.mu.Unlock()
				return s.next[uint64(g)]+2 > next[g]
			})
		}
		b.mu.RLock()
		streams := b.peers["n1"].streamsTotal
		b.mu.RUnlock()
		s.mu.Lock()
		defer s.mu.Unlock()
		for g, gaps := range s.gaps {
			if gaps > int(streams)-1 {
				t.Errorf("group %d: %d gaps, with %d streams", g, gaps, streams)
			}
		}
		if int(streams) <= cuts || s.all < cuts*each/4 {
			t.Errorf("%d streams, %d messages arrived", streams, s.all)
		}
	})
}

// TestLateFramesAreDropped: when a peer uses a new stream, the remaining frames of its
// old stream are dropped.
func TestLateFramesAreDropped(t *testing.T) {
	t.Parallel() // it waits for connections
	both(t, func(t *testing.T, p *pki) {
		a, _, alive := pair(t, p, nil)
		s := newSequences(t)
		a.Handle(1, s.receive(1))
		files := evilFiles(p)
		first, second := evil(t, a, files), evil(t, a, files)
		send := func(to interface{ SendMsg(any) error }, n uint64) {
			m := transport.Message{Group: 1, Payload: binary.BigEndian.AppendUint64(nil, n)}
			if err := to.SendMsg(mem.BufferSlice{mem.SliceBuffer(appendMessages(nil, []transport.Message{m}))}); err != nil {
				t.Fatal(err)
			}
		}
		send(first, 0)
		await(t, "the first message", func() bool { return s.count() == 1 })
		send(second, 1)
		await(t, "the second message", func() bool { return s.count() == 2 })
		send(first, 2)
		ended := make(chan error, 1)
		go func() { ended <- first.RecvMsg(new([]byte)) }()
		await(t, "the end of the first stream", func() bool { return len(ended) == 1 })
		if err := <-ended; status.Code(err) != codes.Unavailable {
			t.Errorf("the first stream ended with %v", err)
		}
		send(second, 3)
		await(t, "a message on the second stream", func() bool { return s.count() == 3 })
		if s.gaps[1] != 1 || a.Stats().Refused != 0 {
			t.Errorf("%d gaps, %+v", s.gaps[1], a.Stats())
		}
		alive()
	})
}
