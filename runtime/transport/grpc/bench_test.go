package grpc

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/topogen/topogen/runtime/transport"
)

// Messages of 64 bytes in one direction over loopback, 64 in a call. There are never
// more in transit than the queue holds, so none is dropped. Raw is TCP with a length
// before each message.
const (
	benchEach   = 64
	benchWindow = transport.QueueMessages / 2 // half, because received messages may still count as queued for a moment
)

func BenchmarkOneWay(b *testing.B) {
	b.Run("plain", func(b *testing.B) { benchOneWay(b, nil) })
	b.Run("tls", func(b *testing.B) { benchOneWay(b, newPKI(b)) })
	b.Run("raw", benchRaw)
}

func benchOneWay(b *testing.B, p *pki) {
	from, to := start(b, p.config(b, "n1")), start(b, p.config(b, "n2"))
	var received atomic.Int64
	moved := make(chan struct{}, 1)
	to.Handle(ledger, func(_ string, payloads [][]byte) {
		received.Add(int64(len(payloads)))
		select {
		case moved <- struct{}{}:
		default:
		}
	})
	meet(b, from, to)
	payload := make([]byte, 64)
	batch := make([]transport.Message, benchEach)
	for i := range batch {
		batch[i] = transport.Message{Group: ledger, Payload: payload}
	}
	sent := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		for sent-received.Load() > benchWindow-benchEach {
			<-moved
		}
		from.Send("n2", batch...)
		sent += benchEach
	}
	for received.Load() < sent {
		<-moved
	}
	b.ReportMetric(float64(sent)/b.Elapsed().Seconds(), "messages/s")
	if s := from.Stats(); s.Dropped > 0 {
		b.Errorf("%d dropped", s.Dropped)
	}
}

func benchRaw(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	done := make(chan int64)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		r := bufio.NewReaderSize(conn, transferBuffer)
		var head [4]byte
		count := int64(0)
		for {
			if _, err := io.ReadFull(r, head[:]); err != nil {
				done <- count
				return
			}
			payload := make([]byte, binary.LittleEndian.Uint32(head[:]))
			io.ReadFull(r, payload)
			count++
		}
	}()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	w := bufio.NewWriterSize(conn, transferBuffer)
	payload := make([]byte, 64)
	b.ReportAllocs()
	for b.Loop() {
		for range benchEach {
			var head [4]byte
			binary.LittleEndian.PutUint32(head[:], uint32(len(payload)))
			w.Write(head[:])
			w.Write(payload)
		}
	}
	w.Flush()
	conn.Close()
	count := <-done
	b.ReportMetric(float64(count)/b.Elapsed().Seconds(), "messages/s")
}

// BenchmarkThereAndBack measures the round trip of one message.
func BenchmarkThereAndBack(b *testing.B) {
	for name, p := range map[string]*pki{"plain": nil, "tls": newPKI(b)} {
		b.Run(name, func(b *testing.B) {
			from, to := start(b, p.config(b, "n1")), start(b, p.config(b, "n2"))
			back := make(chan struct{}, 1)
			to.Handle(ledger, func(string, [][]byte) { to.Send("n1", number(0)) })
			from.Handle(ledger, func(string, [][]byte) { back <- struct{}{} })
			meet(b, from, to)
			for b.Loop() {
				from.Send("n2", number(0))
				<-back
			}
		})
	}
}

// BenchmarkSnapshot sends messages of 64 MiB.
func BenchmarkSnapshot(b *testing.B) {
	for name, p := range map[string]*pki{"plain": nil, "tls": newPKI(b)} {
		b.Run(name, func(b *testing.B) {
			from, to := start(b, p.config(b, "n1")), start(b, p.config(b, "n2"))
			arrived := make(chan struct{}, 1)
			to.Handle(ledger, func(string, [][]byte) { arrived <- struct{}{} })
			meet(b, from, to)
			payload := make([]byte, 64<<20)
			b.SetBytes(int64(len(payload)))
			for b.Loop() {
				from.Send("n2", transport.Message{Group: ledger, Payload: payload})
				<-arrived
			}
		})
	}
}
