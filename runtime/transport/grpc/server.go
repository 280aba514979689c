package grpc

import (
	"context"
	"fmt"
	"net"
	"strings"

	gogrpc "google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	gogrpcpeer "google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

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

func (t *Transport) newServer() *gogrpc.Server {
	credentials := insecure.NewCredentials()
	if t.certificates != nil {
		credentials = newMutualTLS(t.certificates, func(conn net.Conn, err error) {
			t.refuseTLS(conn.RemoteAddr(), err)
		})
	}
	server := gogrpc.NewServer(
		gogrpc.Creds(credentials),
		gogrpc.ConnectionTimeout(handshakeTimeout),
		gogrpc.MaxRecvMsgSize(frameBytesMax),
		gogrpc.MaxConcurrentStreams(streamsMax),
		gogrpc.MaxHeaderListSize(headerBytesMax),
		gogrpc.StaticStreamWindowSize(windowBytes),
		gogrpc.StaticConnWindowSize(connWindowBytes),
		gogrpc.ReadBufferSize(transferBuffer),
		gogrpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: idleTimeout, Time: serverPing, Timeout: pingTimeout}),
		gogrpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: clientPing / 2, PermitWithoutStream: true}),
		gogrpc.WaitForHandlers(true),
		gogrpc.ChainUnaryInterceptor(func(ctx context.Context, request any, info *gogrpc.UnaryServerInfo, handler gogrpc.UnaryHandler) (any, error) {
			if err := t.operatorOnly(ctx, info.FullMethod); err != nil {
				return nil, err
			}
			return t.callUnary(ctx, info.FullMethod, func(ctx context.Context) (any, error) { return handler(ctx, request) })
		}),
		gogrpc.ChainStreamInterceptor(func(server any, stream gogrpc.ServerStream, info *gogrpc.StreamServerInfo, handler gogrpc.StreamHandler) error {
			if info.FullMethod == methodCarry {
				return handler(server, stream)
			}
			if err := t.operatorOnly(stream.Context(), info.FullMethod); err != nil {
				return err
			}
			return t.callStream(stream, info.FullMethod, func(stream gogrpc.ServerStream) error { return handler(server, stream) })
		}),
	)
	server.RegisterService(&service, t)
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

// operatorOnly refuses callers that are not operators of this topology. Clients may call
// the service for clients, and nodes the service for nodes.
func (t *Transport) operatorOnly(ctx context.Context, method string) error {
	if t.certificates == nil {
		return nil
	}
	id, _ := Caller(ctx)
	mayCall := id.Operator != "" || id.Client != "" && inService(method, t.config.ClientService) || id.Node != "" && inService(method, t.config.NodeService)
	if mayCall && id.Topology == t.config.Topology && id.TrustDomain == t.config.TrustDomain {
		if id.Operator != "" || id.Node != "" {
			t.connections.acquire(addressOf(ctx)) // until the connection ends
		}
		return nil // the connection of a client is closed first, so that clients keep no node out
	}
	advice, of := "", "an operator"
	if inService(method, t.config.ClientService) {
		advice, of = "; use the certificate of a client, \"topoctl certs --client NAME\" makes one for development", "a client or an operator"
	}
	err := fmt.Errorf("%s is not %s of topology %q in %q, and may not call %.100s%s", id, of, t.config.Topology, t.config.TrustDomain, method, advice)
	t.refuseCaller(ctx, "call", "", err)
	return status.Error(codes.PermissionDenied, err.Error())
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
