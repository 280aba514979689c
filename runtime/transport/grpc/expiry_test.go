package grpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"time"

	gogrpc "google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/topogen/topogen/runtime/transport/certs"
)

// patient is a service whose calls take as long as their callers let them. begun counts them.
func patient(r gogrpc.ServiceRegistrar, begun *atomic.Int32) {
	wait := func(_ any, stream gogrpc.ServerStream) error {
		begun.Add(1)
		if err := stream.SendHeader(nil); err != nil {
			return err
		}
		for {
			if err := stream.RecvMsg(new(emptypb.Empty)); err != nil && !errors.Is(err, io.EOF) {
				return err
			} else if err != nil {
				<-stream.Context().Done()
				return stream.Context().Err()
			}
		}
	}
	r.RegisterService(&gogrpc.ServiceDesc{
		ServiceName: "test.Patient",
		HandlerType: (*any)(nil),
		Methods: []gogrpc.MethodDesc{{MethodName: "Unary", Handler: func(server any, ctx context.Context, decode func(any) error, between gogrpc.UnaryServerInterceptor) (any, error) {
			if err := decode(new(emptypb.Empty)); err != nil {
				return nil, err
			}
			return between(ctx, nil, &gogrpc.UnaryServerInfo{Server: server, FullMethod: "/test.Patient/Unary"}, func(ctx context.Context, _ any) (any, error) {
				begun.Add(1)
				<-ctx.Done()
				return nil, ctx.Err()
			})
		}}},
		Streams: []gogrpc.StreamDesc{
			{StreamName: "Answers", Handler: wait, ServerStreams: true},
			{StreamName: "Requests", Handler: wait, ClientStreams: true},
			{StreamName: "Both", Handler: wait, ServerStreams: true, ClientStreams: true},
		},
	}, nil)
}

// TestCallsEndWithTheirCertificates: all kinds of calls of nodes, operators and clients end
// when a certificate of their connection expires. The caller then reaches the node over a new
// connection, with the certificates that are then in the files.
func TestCallsEndWithTheirCertificates(t *testing.T) {
	t.Parallel() // it waits for the end of certificates
	p := newPKI(t)
	for _, id := range []certs.ID{of("bank", "", "ann"), of("bank", "web", ""), node("n2")} {
		t.Run(id.String(), func(t *testing.T) {
			t.Parallel()
			for life := 300 * time.Millisecond; !callsEnd(t, p, id, life); life *= 2 {
			}
		})
	}
}

// callsEnd makes all kinds of calls over a connection whose certificate has a short life. It returns
// false if the certificate expired before all of them had begun.
func callsEnd(t *testing.T, p *pki, id certs.ID, life time.Duration) bool {
	var log logged
	var begun atomic.Int32
	p = (&pki{t: t, dir: t.TempDir(), ca: p.ca}).withAuthority()
	c := p.config(t, "n1")
	c.Logger = log.logger()
	c.Register = func(r gogrpc.ServiceRegistrar) { patient(r, &begun) }
	c.ClientService, c.NodeService = "test.Patient", "test.Patient"
	c.Limits = map[string]CallLimit{}
	for _, method := range []string{"Unary", "Answers", "Requests", "Both"} {
		c.Limits["/test.Patient/"+method] = CallLimit{Conversation: true}
	}
	a := start(t, c)
	own := (&pki{t: t, dir: t.TempDir(), ca: p.ca}).withAuthority().issue("own", id, time.Hour)
	end := time.Now().Add(life + time.Second).Truncate(time.Second) // certificates have whole seconds
	p.issue("n1", node("n1"), time.Until(end))
	if !a.certificates.Get().expires.Equal(end) {
		return false // it has expired
	}
	connection, err := Dial(a.Addr().String(), own)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	ended := make(chan error)
	calls := 0
	begin := func(call func() error) {
		calls++
		go func() {
			if err := call(); status.Code(err) != codes.Unavailable || time.Now().Before(end) {
				ended <- fmt.Errorf("%v before the end: %w", time.Until(end), err)
				return
			}
			ended <- nil
		}()
	}
	begin(func() error {
		return connection.Invoke(t.Context(), "/test.Patient/Unary", &emptypb.Empty{}, &emptypb.Empty{})
	})
	for _, d := range []gogrpc.StreamDesc{{StreamName: "Answers", ServerStreams: true}, {StreamName: "Requests", ClientStreams: true}, {StreamName: "Both", ServerStreams: true, ClientStreams: true}} {
		begin(func() error {
			stream, err := connection.NewStream(t.Context(), &d, "/test.Patient/"+d.StreamName)
			if err != nil {
				return err
			}
			if err := stream.SendMsg(&emptypb.Empty{}); err != nil && !errors.Is(err, io.EOF) {
				return err
			}
			return stream.RecvMsg(&emptypb.Empty{})
		})
	}
	for range calls {
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(life + 10*time.Second):
			t.Fatalf("a call goes on although its certificate has expired\n%s", &log)
		}
	}
	if int(begun.Load()) < calls {
		return false
	}
	if log.count("WARN", "a certificate has expired", id.String()) != 1 {
		t.Errorf("the log does not name the caller:\n%s", &log)
	}
	p.issue("n1", node("n1"), time.Hour)
	await(t, "a call over a new connection", func() bool {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		stream, err := connection.NewStream(ctx, &gogrpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/test.Patient/Both")
		if err != nil {
			return false
		}
		header, err := stream.Header()
		return err == nil && header != nil
	})
	return true
}

func (p *pki) withAuthority() *pki {
	p.write("ca.crt", p.ca.Cert)
	return p
}
