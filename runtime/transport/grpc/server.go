package grpc

import (
	"context"
	"fmt"
	"net"
	"strings"

	gogrpc "google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	gogrpcpeer "google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/topogen/topogen/runtime/transport/certs"
)

const (
	serviceName = "topogen.transport.v1.Transport"
	methodCarry = "/" + serviceName + "/Carry"
)

// service is the service of transport.proto.
var service = gogrpc.ServiceDesc{
	ServiceName: serviceName,
	HandlerType: (*carrier)(nil),
	Streams: []gogrpc.StreamDesc{{
		StreamName:    "Carry",
		Handler:       func(server any, stream gogrpc.ServerStream) error { return server.(carrier).carry(stream) },
		ClientStreams: true,
		ServerStreams: true,
	}},
	Metadata: "transport.proto",
}

type carrier interface {
	carry(stream gogrpc.ServerStream) error
}

// newServers creates the server for nodes, and with TLS the one for operators and clients.
func (t *Transport) newServers() {
	if t.certificates == nil {
		t.server = t.newServer(insecure.NewCredentials(), frameBytesMax, streamsMax, windowBytes)
	} else {
		accept := func(_, other certs.ID) error { return t.belongs(other) }
		secure := newMutualTLS(t.certificates, accept, func(conn net.Conn, err error) { t.refuseTLS(conn.RemoteAddr(), err) })
		t.server = t.newServer(&listenerTLS{secure, t}, frameBytesMax, streamsMax, windowBytes)
		t.guests = newGuests(t.address)
		t.guestServer = t.newServer(guestCredentials{secure}, guestMessageMax, guestStreamsMax, guestWindow)
	}
	t.server.RegisterService(&service, t)
}

func (t *Transport) newServer(secure credentials.TransportCredentials, messageMax int, streams uint32, window int32) *gogrpc.Server {
	server := gogrpc.NewServer(
		gogrpc.Creds(secure),
		gogrpc.ConnectionTimeout(handshakeTimeout),
		gogrpc.MaxRecvMsgSize(messageMax),
		gogrpc.MaxConcurrentStreams(streams),
		gogrpc.MaxHeaderListSize(headerBytesMax),
		gogrpc.StaticStreamWindowSize(window),
		gogrpc.StaticConnWindowSize(2*window), // of nodes: a stream and its successor
		gogrpc.ReadBufferSize(transferBuffer),
		gogrpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: idleTimeout, Time: serverPing, Timeout: pingTimeout}),
		gogrpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: clientPing / 2, PermitWithoutStream: true}),
		gogrpc.WaitForHandlers(true),
		gogrpc.InTapHandle(func(ctx context.Context, call *tap.Info) (context.Context, error) {
			return t.awaitRequest(ctx, call.FullMethodName), t.mayCall(ctx, call.FullMethodName)
		}),
		gogrpc.ChainUnaryInterceptor(func(ctx context.Context, request any, info *gogrpc.UnaryServerInfo, handler gogrpc.UnaryHandler) (any, error) {
			return t.callUnary(ctx, info.FullMethod, func(ctx context.Context) (any, error) { return handler(ctx, request) })
		}),
		gogrpc.ChainStreamInterceptor(func(server any, stream gogrpc.ServerStream, info *gogrpc.StreamServerInfo, handler gogrpc.StreamHandler) error {
			return t.callStream(stream, info.FullMethod, func(stream gogrpc.ServerStream) error { return handler(server, stream) })
		}),
	)
	if t.config.Register != nil {
		t.config.Register(server)
	}
	return server
}

// Caller returns who has called a service, according to the certificate. Without TLS,
// ok is false.
func Caller(ctx context.Context) (id certs.ID, ok bool) {
	caller, ok := callerOf(ctx)
	return caller.id, ok
}

func callerOf(ctx context.Context) (caller identity, ok bool) {
	p, ok := gogrpcpeer.FromContext(ctx)
	if !ok {
		return caller, false
	}
	caller, ok = p.AuthInfo.(identity)
	return caller, ok
}

// mayCall refuses callers that may not call a method. Operators may call all registered
// services but the one for nodes, clients the one for clients, and nodes the one for nodes. gRPC calls mayCall
// before it reads a message of the call.
func (t *Transport) mayCall(ctx context.Context, method string) error {
	if t.certificates == nil {
		return nil
	}
	caller, _ := callerOf(ctx)
	if caller.hasExpired() {
		return errCallExpired
	}
	id := caller.id
	var err error
	switch {
	case method == methodCarry && id.Node == "":
		err = fmt.Errorf("%s is not a node", id)
	case method == methodCarry:
	case id.Node != "" && inService(method, t.config.NodeService):
		t.connections.acquire(addressOf(ctx)) // until the connection ends
	case id.Operator != "" && (inService(method, t.config.ClientService) || !inService(method, t.config.NodeService)):
	case id.Client != "" && inService(method, t.config.ClientService):
	default:
		err = t.wrongRole(id, method)
	}
	if err != nil {
		t.refuseCaller(ctx, "call", "", err)
		return status.Error(codes.PermissionDenied, err.Error())
	}
	return nil
}

func (t *Transport) wrongRole(id certs.ID, method string) error {
	advice, of := "", "an operator"
	switch {
	case inService(method, t.config.NodeService):
		of = "a node"
	case inService(method, t.config.ClientService):
		advice, of = "; use the certificate of a client, \"topoctl certs --client NAME\" makes one for development", "a client or an operator"
	}
	return fmt.Errorf("%s is not %s of topology %q in %q, and may not call %.100s%s", id, of, t.config.Topology, t.config.TrustDomain, method, advice)
}

// inService reports whether a method belongs to a service; "" is none.
func inService(method, service string) bool {
	return service != "" && strings.HasPrefix(method, "/"+service+"/")
}

// addressOf returns the address that a call comes from.
func addressOf(ctx context.Context) net.Addr {
	if p, ok := gogrpcpeer.FromContext(ctx); ok && p.Addr != nil {
		return p.Addr
	}
	return &net.TCPAddr{}
}
