package nodes

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const (
	messageBytes = 64
	frameOf      = 128 // messages in a frame of the bare stream
)

func init() { roles["grpc"] = serveGRPC }

var stream = grpc.StreamDesc{StreamName: "Bare", ClientStreams: true, ServerStreams: true}

// serveGRPC answers the last frame of a flood, and each frame of a call.
func serveGRPC(string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s := grpc.NewServer()
	d := stream
	sum := uint64(0)
	d.Handler = func(_ any, st grpc.ServerStream) error {
		for {
			m := new(wrapperspb.BytesValue)
			if err := st.RecvMsg(m); err != nil {
				return nil
			}
			b := m.Value
			for i := 0; i+messageBytes <= len(b); i += messageBytes {
				sum += binary.LittleEndian.Uint64(b[i:])
			}
			if len(b)%messageBytes != 0 { // asks for an answer
				if err := st.SendMsg(wrapperspb.Bytes(b[:1])); err != nil {
					return nil
				}
			}
		}
	}
	s.RegisterService(&grpc.ServiceDesc{ServiceName: "bare", HandlerType: (*any)(nil), Streams: []grpc.StreamDesc{d}}, nil)
	go s.Serve(l)
	fmt.Println(l.Addr())
	untilClosed()
	s.Stop()
	return nil
}

func dialGRPC(b *testing.B) grpc.ClientStream {
	conn, err := grpc.NewClient(start(b, "grpc", ""), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close() })
	st, err := conn.NewStream(context.Background(), &stream, "/bare/Bare")
	if err != nil {
		b.Fatal(err)
	}
	return st
}

func call(b *testing.B, st grpc.ClientStream, m []byte) {
	if err := st.SendMsg(wrapperspb.Bytes(m)); err != nil {
		b.Fatal(err)
	}
	if err := st.RecvMsg(new(wrapperspb.BytesValue)); err != nil && err != io.EOF {
		b.Fatal(err)
	}
}

func BenchmarkOneWay_gRPC(b *testing.B) {
	st := dialGRPC(b)
	call(b, st, []byte{1})
	b.SetBytes(messageBytes)
	own, other := processorTime(b, started)
	b.ResetTimer()
	for n := 0; n < b.N; n += frameOf {
		if err := st.SendMsg(wrapperspb.Bytes(make([]byte, messageBytes*min(frameOf, b.N-n)))); err != nil {
			b.Fatal(err)
		}
	}
	call(b, st, []byte{1})
	reportProcessorTime(b, own, other)
}

func BenchmarkRoundTrip_gRPC(b *testing.B) {
	st := dialGRPC(b)
	own, other := processorTime(b, started)
	b.ResetTimer()
	for range b.N {
		call(b, st, make([]byte, messageBytes+1))
	}
	reportProcessorTime(b, own, other)
}
