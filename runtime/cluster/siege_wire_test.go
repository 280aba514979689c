package cluster

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"io"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/protobuf/encoding/protowire"
)

// attackerHost is the address that attackers come from. The victims come from 127.0.0.1.
const attackerHost = "127.0.0.2"

func dialFrom(host, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: 5 * time.Second, LocalAddr: &net.TCPAddr{IP: net.ParseIP(host)}}
	return d.Dial("tcp", address)
}

// strangers is a certificate that no authority has signed.
func strangers(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// wire is a connection of HTTP/2 that answers pings, and takes nothing of the answers.
type wire struct {
	net.Conn
	mu     sync.Mutex // guards framer for writing
	framer *http2.Framer
	block  bytes.Buffer
	hpack  *hpack.Encoder
	stream uint32 // the last one
	ended  chan struct{}
	got    int // frames of answers; valid after ended
}

// wire connects with a certificate. It returns nil if the listener refuses the connection.
func (b *besieged) wire(pair tls.Certificate) *wire {
	raw, err := dialFrom(attackerHost, b.address)
	if err != nil {
		return nil
	}
	conn := tls.Client(raw, &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if conn.Handshake() != nil {
		_ = raw.Close()
		return nil
	}
	w := &wire{Conn: conn, framer: http2.NewFramer(conn, conn), ended: make(chan struct{})}
	w.hpack = hpack.NewEncoder(&w.block)
	_, _ = io.WriteString(conn, http2.ClientPreface)
	_ = w.framer.WriteSettings()
	if _, err := w.framer.ReadFrame(); err != nil { // in TLS 1.3 only this shows that the certificate is accepted
		_ = conn.Close()
		return nil
	}
	_ = conn.SetDeadline(time.Time{})
	go w.read()
	return w
}

// read answers pings.
func (w *wire) read() {
	defer close(w.ended)
	for {
		f, err := w.framer.ReadFrame()
		if err != nil {
			return
		}
		switch f := f.(type) {
		case *http2.PingFrame:
			if !f.IsAck() {
				w.mu.Lock()
				_ = w.framer.WritePing(true, f.Data)
				w.mu.Unlock()
			}
		case *http2.DataFrame, *http2.MetaHeadersFrame, *http2.HeadersFrame:
			w.got++
		}
	}
}

// begin begins a call.
func (w *wire) begin(method string, metadata ...string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.block.Reset()
	fields := []string{":method", "POST", ":scheme", "https", ":path", method, ":authority", "n1", "te", "trailers", "content-type", "application/grpc"}
	fields = append(fields, metadata...)
	for i := 0; i < len(fields); i += 2 {
		if err := w.hpack.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}); err != nil {
			return err
		}
	}
	w.stream += 2
	return w.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: w.stream - 1, BlockFragment: w.block.Bytes(), EndHeaders: true})
}

// send sends data of the last call.
func (w *wire) send(data []byte, end bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(data) > 1<<14 {
		if err := w.framer.WriteData(w.stream-1, false, data[:1<<14]); err != nil {
			return err
		}
		data = data[1<<14:]
	}
	return w.framer.WriteData(w.stream-1, end, data)
}

// bytesMessage is a message of gRPC with a google.protobuf.StringValue or BytesValue.
func bytesMessage(value []byte) []byte {
	m := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), value)
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(m))), m...)
}

// announced is the beginning of a message of gRPC with n bytes, of which only some are there.
func announced(n, sent int) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(n)), make([]byte, sent)...)
}

// shortConn sends only a number of bytes, and then pretends to send.
type shortConn struct {
	net.Conn
	left int
}

func (c *shortConn) Write(b []byte) (int, error) {
	n := min(len(b), c.left)
	c.left -= n
	if n == 0 {
		return len(b), nil
	}
	if _, err := c.Conn.Write(b[:n]); err != nil {
		return 0, err
	}
	return len(b), nil
}

// crowd has connections that are open at the same time.
type crowd struct {
	mu   sync.Mutex
	open []io.Closer
}

func (c *crowd) add(conn io.Closer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = append(c.open, conn)
}

func (c *crowd) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.open {
		_ = conn.Close()
	}
}

// gather calls open in some goroutines, n times in total.
func gather(n int, open func(i int)) {
	var all sync.WaitGroup
	next := make(chan int)
	for range 8 {
		all.Go(func() {
			for i := range next {
				open(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	all.Wait()
}

// again calls f until the context ends.
func again(f func()) func(context.Context) {
	return func(ctx context.Context) {
		for ctx.Err() == nil {
			f()
		}
	}
}

// lines counts the lines of a log that contain a text.
func lines(log, text string) (n int) {
	for line := range strings.Lines(log) {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}
