package grpc

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	gogrpc "google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/transport/certs"
)

// of returns the identity of a client, or of an operator, of a topology.
func of(topology, client, operator string) certs.ID {
	return certs.ID{TrustDomain: "example.org", Topology: topology, Client: client, Operator: operator}
}

// wire is a connection of HTTP/2 whose frames the test writes itself.
type wire struct {
	*tls.Conn
	*http2.Framer
}

func (p *pki) wire(t *testing.T, a *Transport, id certs.ID) wire {
	t.Helper()
	files := p.issue("wire", id, time.Hour)
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := tls.Dial("tcp", a.Addr().String(), &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(conn, http2.ClientPreface) // a listener that has refused the connection does not read it
	f := http2.NewFramer(conn, conn)
	_ = f.WriteSettings()
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	return wire{conn, f}
}

// begin begins a call with a message of the given length, of which one byte is missing.
func (w wire) begin(t *testing.T, method string, length int) {
	t.Helper()
	var block bytes.Buffer
	headers := hpack.NewEncoder(&block)
	for _, field := range [][2]string{{":method", "POST"}, {":scheme", "https"}, {":path", method}, {":authority", "n1"}, {"te", "trailers"}, {"content-type", "application/grpc"}} {
		if err := headers.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true}); err != nil {
		t.Fatal(err)
	}
	if err := w.WriteData(1, false, append(binary.BigEndian.AppendUint32([]byte{0}, uint32(length)), make([]byte, length-1)...)); err != nil {
		t.Fatal(err)
	}
}

// TestOtherTopology: a certificate of the same authority for another topology or another
// trust domain is refused in the handshake, and the log names it once.
func TestOtherTopology(t *testing.T) {
	p := newPKI(t)
	var log logged
	c := p.config(t, "n1")
	c.Logger, c.Register = log.logger(), echo
	a := start(t, c)
	for range 3 {
		w := p.wire(t, a, of("shop", "eve", ""))
		if f, err := w.ReadFrame(); err == nil || !strings.Contains(err.Error(), "bad certificate") {
			t.Errorf("the frame %v and the error %v, want a refused certificate", f, err)
		}
	}
	await(t, "the refusals to be counted", func() bool { return a.Stats().Refused == 3 })
	if n := log.count("ERROR", `spiffe://example.org/shop/client/eve is not in the topology of this node, \"bank\"`); n != 1 {
		t.Errorf("logged %d times:\n%s", n, &log)
	}
}

// TestCallsAreRefusedEarly: a call of a method that the caller may not call is refused
// before its message has arrived.
func TestCallsAreRefusedEarly(t *testing.T) {
	p := newPKI(t)
	c := p.config(t, "n1")
	c.Register = echo
	a := start(t, c)
	for _, id := range []certs.ID{of("bank", "web", ""), node("n2")} {
		w := p.wire(t, a, id)
		w.begin(t, "/test.Echo/Who", 1000)
		for {
			f, err := w.ReadFrame()
			if err != nil {
				t.Fatal(err)
			}
			if h, ok := f.(*http2.MetaHeadersFrame); ok {
				if fields := h.Fields; !h.StreamEnded() || !strings.Contains(headerField(fields, "grpc-message"), "is not an operator of topology") {
					t.Errorf("%s: %v", id, fields)
				}
				break
			}
		}
	}
}

func headerField(fields []hpack.HeaderField, name string) string {
	for _, f := range fields {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

// TestGuestsAreSmall: clients and operators may send less than nodes before they are read.
func TestGuestsAreSmall(t *testing.T) {
	p := newPKI(t)
	c := p.config(t, "n1")
	c.Register, c.ClientService = echo, "test.Echo"
	a := start(t, c)
	for id, want := range map[certs.ID][2]uint32{
		of("bank", "web", ""): {guestStreamsMax, guestWindow},
		of("bank", "", "ann"): {guestStreamsMax, guestWindow},
		node("n2"):            {streamsMax, windowBytes},
	} {
		f, err := p.wire(t, a, id).ReadFrame()
		settings, ok := f.(*http2.SettingsFrame)
		if err != nil || !ok {
			t.Fatalf("%s: the first frame is %v, %v", id, f, err)
		}
		streams, _ := settings.Value(http2.SettingMaxConcurrentStreams)
		window, _ := settings.Value(http2.SettingInitialWindowSize)
		if window == 0 {
			window = 65535 // the default of HTTP/2
		}
		if streams != want[0] || window != want[1] {
			t.Errorf("%s: %d streams with windows of %d bytes, want %v", id, streams, window, want)
		}
	}
	connection, err := Dial(a.Addr().String(), p.issue("web", of("bank", "web", ""), time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	for size, want := range map[int]string{256 << 10: "you are", 1 << 20: "larger than max"} {
		if err := connection.Invoke(t.Context(), "/test.Echo/Who", wrapperspb.Bytes(make([]byte, size)), &emptypb.Empty{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a message of %d bytes: %v, want %q", size, err, want)
		}
	}
}

// TestConnectionsOfOneCertificate: one certificate cannot use all connections.
func TestConnectionsOfOneCertificate(t *testing.T) {
	p := newPKI(t)
	var log logged
	c := p.config(t, "n1")
	c.Logger = log.logger()
	a := start(t, c)
	a.connections.ownerMax = 2
	settings := func(w wire) error {
		_, err := w.ReadFrame()
		return err
	}
	web := of("bank", "web", "")
	first := p.wire(t, a, web)
	for _, w := range []wire{first, p.wire(t, a, web), p.wire(t, a, of("bank", "app", ""))} {
		if err := settings(w); err != nil {
			t.Fatal(err)
		}
	}
	if err := settings(p.wire(t, a, web)); !errors.Is(err, io.EOF) {
		t.Errorf("the third connection of a certificate: %v", err)
	}
	await(t, "the refusal to be logged", func() bool { return log.count("ERROR", "client/web has 2 connections already") == 1 })
	_ = first.Close()
	await(t, "room for another connection", func() bool { return settings(p.wire(t, a, web)) == nil })
}

// TestGuestsEnd: connections of clients end with the node.
func TestGuestsEnd(t *testing.T) {
	p := newPKI(t)
	c := p.config(t, "n1")
	c.Register, c.ClientService = echo, "test.Echo"
	a := start(t, c)
	w := p.wire(t, a, of("bank", "web", ""))
	if _, err := w.ReadFrame(); err != nil {
		t.Fatal(err)
	}
	connection, err := Dial(a.Addr().String(), p.issue("web", of("bank", "web", ""), time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if err := connection.Invoke(t.Context(), "/test.Echo/Who", &emptypb.Empty{}, &emptypb.Empty{}); status.Code(err) != codes.DataLoss {
		t.Errorf("a call: %v", err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := w.ReadFrame(); err != nil {
			break
		}
	}
	// Close does not wait for the goroutine that removes a connection.
	await(t, "the goroutines of the server to end", func() bool {
		_, stacks := goroutines()
		return !strings.Contains(stacks, "(*Server)")
	})
}

// TestSilentUnaryCall: a call with one request ends when the caller does not send it.
func TestSilentUnaryCall(t *testing.T) {
	speed.Landing(t) // it waits for requestTimeMax
	t.Parallel()
	p := newPKI(t)
	c := p.config(t, "n1")
	c.Register = echo
	a := start(t, c)
	connection, err := Dial(a.Addr().String(), p.issue("ann", of("bank", "", "ann"), time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 3*requestTimeMax)
	defer cancel()
	began := time.Now()
	stream, err := connection.NewStream(ctx, &gogrpc.StreamDesc{ClientStreams: true}, "/test.Echo/Who")
	if err != nil {
		t.Fatal(err)
	}
	err = stream.RecvMsg(&emptypb.Empty{})
	if took := time.Since(began); err == nil || took < requestTimeMax || took > 2*requestTimeMax {
		t.Errorf("after %v: %v, want an error after %v", took, err, requestTimeMax)
	}
}
