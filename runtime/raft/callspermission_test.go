package raft_test

import (
	"testing"

	gogrpc "google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/topogen/topogen/runtime/transport/certs"
	"github.com/topogen/topogen/runtime/transport/grpc"
)

// TestCallPermission: with TLS only nodes of the topology may call, because a node keeps 32 MiB for
// each call, and a chunk of an unknown form is refused.
func TestCallPermission(t *testing.T) {
	t.Parallel()
	files := nodeFiles(t)
	own := files(certs.ID{Topology: "test", Node: "n1"})
	config := overGRPC(t, "n1")[0]
	address := config.Peers["n1"]
	config.Called, config.TLSCert, config.TLSKey, config.TLSCA = answer, own.Cert, own.Key, own.CA
	items(t, open(t, config))
	for _, c := range []struct {
		who   string
		id    certs.ID
		chunk []byte
		want  codes.Code
	}{
		{"a node", certs.ID{Topology: "test", Node: "n2"}, []byte("\x01x"), codes.OK},
		{"an empty chunk", certs.ID{Topology: "test", Node: "n2"}, nil, codes.InvalidArgument},
		{"an unknown chunk", certs.ID{Topology: "test", Node: "n2"}, []byte("\x02x"), codes.InvalidArgument},
		{"a chunk without bytes", certs.ID{Topology: "test", Node: "n2"}, []byte("\x00"), codes.InvalidArgument},
		{"an operator", certs.ID{Topology: "test", Operator: "ann"}, []byte("\x01x"), codes.PermissionDenied},
		{"a client", certs.ID{Topology: "test", Client: "web"}, []byte("\x01x"), codes.PermissionDenied},
	} {
		tls := files(c.id)
		conn, err := grpc.Dial(address, &tls)
		if err != nil {
			t.Fatal(err)
		}
		ctx := metadata.AppendToOutgoingContext(t.Context(), "topogen-group-bin", "lists")
		stream, err := conn.NewStream(ctx, &gogrpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/topogen.raft.Calls/Call")
		if err != nil {
			t.Fatal(err)
		}
		_ = stream.SendMsg(wrapperspb.Bytes(c.chunk)) // RecvMsg returns the error
		_ = stream.CloseSend()
		var part wrapperspb.BytesValue
		if err := stream.RecvMsg(&part); status.Code(err) != c.want || err == nil && string(part.GetValue()) != "\x01x" {
			t.Errorf("%s: %q, %v", c.who, part.GetValue(), err)
		}
		_ = conn.Close()
	}
}
