package grpc

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	gogrpc "google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/internal/loglimit"
	"github.com/topogen/topogen/runtime/transport"
	"github.com/topogen/topogen/runtime/transport/certs"
)

// pair is a node with an honest peer, to check that hostile peers do not affect it.
func pair(t *testing.T, p *pki, change func(c *Config)) (a *Transport, log *logged, alive func()) {
	t.Helper()
	log = new(logged)
	c := p.config(t, "n1")
	c.Logger = log.logger()
	if change != nil {
		change(&c)
	}
	a = start(t, c)
	b := start(t, p.config(t, "n2"))
	y := newTally(t)
	a.Handle(ledger, y.receive)
	meet(t, a, b)
	next := uint64(0)
	return a, log, func() {
		t.Helper()
		b.Send("n1", number(next))
		next++
		await(t, "the message of the honest peer", func() bool { return y.from("n2") == next })
		if s := b.Stats(); s.Dropped != 0 {
			t.Errorf("the honest peer: %+v", s)
		}
	}
}

// evil opens a stream with a valid hello, on which the test sends arbitrary frames.
func evil(t *testing.T, a *Transport, files *TLS) gogrpc.ClientStream {
	t.Helper()
	h := &hello{protocol: protocol, topology: "bank", version: "1", trustDomain: a.config.TrustDomain, node: "evil", to: "n1", incarnation: 1}
	var stream gogrpc.ClientStream
	await(t, "the stream to be accepted", func() bool { // its previous stream may not have ended yet
		s, err := raw(t, a, files, h.metadata())
		if err != nil {
			return false
		}
		headers, err := s.Header()
		stream = s
		return err == nil && len(headers.Get(helloKey)) == 1
	})
	return stream
}

func evilFiles(p *pki) *TLS {
	if p == nil {
		return nil
	}
	return p.issue("evil", node("evil"), time.Hour)
}

// TestHostileFrames: each hostile frame ends its stream, is counted, and affects no
// other peer.
func TestHostileFrames(t *testing.T) {
	both(t, func(t *testing.T, p *pki) {
		a, log, alive := pair(t, p, func(c *Config) { c.MessageBytesMax = 8 << 20 })
		files := evilFiles(p)
		head := func(c chunk) []byte { return append(appendChunkHead(nil, &c), c.data...) }
		mb := make([]byte, 1<<20)
		many := make([]transport.Message, frameMessagesMax+1)
		empty := bytes.Repeat([]byte{tagMessages, 0}, frameMessagesMax+1)
		for name, test := range map[string]struct {
			frames [][]byte
			want   string
		}{
			"garbage":             {[][]byte{[]byte("GET / HTTP/1.1\r\n\r\n")}, "invalid frame"},
			"a length of 4 GiB":   {[][]byte{{tagMessages, 0xff, 0xff, 0xff, 0xff, 0x0f}}, "invalid frame"},
			"half a message":      {[][]byte{{tagMessages, 10, tagGroup, 1}}, "invalid frame"},
			"a wrong type":        {[][]byte{{1 << 3, 7}}, "wire type"},
			"a wrong type within": {[][]byte{{tagMessages, 2, 1 << 3, 7}}, "wire type"},
			"too many payloads":   {[][]byte{appendMessages(nil, many)}, "more than 512 messages"},
			"too many empty ones": {[][]byte{empty}, "more than 512 messages"},
			"too large":           {[][]byte{make([]byte, frameBytesMax+1)}, "larger than max"},
			"a message too large": {[][]byte{head(chunk{size: 1 << 40, data: mb})}, "at most 8388608 are allowed together"},
			"two messages too large together": {[][]byte{
				head(chunk{group: 1, size: 5 << 20, data: mb}), head(chunk{group: 2, size: 5 << 20, data: mb}),
			}, "beside others of 5242880"},
			"a chunk from the middle": {[][]byte{head(chunk{size: 4 << 20, offset: 1 << 20, data: mb})}, "has not begun"},
			"a chunk left out": {[][]byte{
				head(chunk{size: 4 << 20, data: mb}), head(chunk{size: 4 << 20, offset: 2 << 20, data: mb}),
			}, "want the chunk at"},
			"another size": {[][]byte{
				head(chunk{size: 4 << 20, data: mb}), head(chunk{size: 3 << 20, offset: 1 << 20, data: mb}),
			}, "want the chunk at"},
			"more than announced": {[][]byte{head(chunk{size: 10, data: mb})}, "a chunk must have 1 to"},
			"an empty chunk":      {[][]byte{head(chunk{size: 10})}, "a chunk must have 1 to"},
			"a chunk of nothing":  {[][]byte{head(chunk{})}, "has not begun"},
		} {
			before := a.Stats().Refused
			s := evil(t, a, files)
			for _, frame := range test.frames {
				if err := s.SendMsg(mem.BufferSlice{mem.SliceBuffer(frame)}); err != nil && err != io.EOF {
					t.Error(err)
				}
			}
			err := refusal(t, s, nil)
			if code := status.Code(err); code != codes.InvalidArgument && code != codes.ResourceExhausted || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: %v\nwant %q", name, err, test.want)
			}
			if n := a.Stats().Refused; n != before+1 {
				t.Errorf("%s: %d refused, want 1", name, n-before)
			}
			alive()
		}
		if n := log.count("ERROR", "violates the protocol", "peer=evil"); n != 1 {
			t.Errorf("logged %d times:\n%s", n, log)
		}
		await(t, "the memory of incomplete messages to be released", func() bool {
			return a.assembling.left.Load() == int64(a.config.ReassemblyBytesMax)
		})
	})
}

// TestRandomFrames: random frames neither stop the node nor use up memory.
func TestRandomFrames(t *testing.T) {
	var none *pki
	a, _, alive := pair(t, none, nil)
	rng := rand.New(rand.NewPCG(1, 1))
	good := appendMessages(nil, []transport.Message{{Group: 6, Payload: make([]byte, 9)}, {Group: 7, Payload: make([]byte, 50)}})
	good = append(good, appendChunkHead(nil, &chunk{group: 3, size: 100, data: make([]byte, 50)})...)
	for range 50 {
		s := evil(t, a, nil)
		for range 20 {
			b := bytes.Clone(good)
			for range 1 + rng.IntN(4) {
				b[rng.IntN(len(b))] = byte(rng.Uint32())
			}
			if s.SendMsg(mem.BufferSlice{mem.SliceBuffer(b[:rng.IntN(len(b))])}) != nil {
				break
			}
		}
		s.CloseSend()
		s.RecvMsg(new([]byte))
	}
	alive()
}

// TestAssemblyIsBounded: an announced size costs no memory, received chunks cost their
// size, and a message beyond the limit for all is dropped.
func TestAssemblyIsBounded(t *testing.T) {
	var none *pki
	a, log, alive := pair(t, none, func(c *Config) { c.MessageBytesMax, c.ReassemblyBytesMax = 64<<20, 12<<20 })
	s := evil(t, a, nil)
	send := func(c chunk) {
		t.Helper()
		if err := s.SendMsg(mem.BufferSlice{mem.SliceBuffer(appendChunkHead(nil, &c)), mem.SliceBuffer(c.data)}); err != nil {
			t.Fatal(err)
		}
	}
	mb := make([]byte, 1<<20)
	for i := range uint64(20) {
		send(chunk{group: 1, size: 20 << 20, offset: i << 20, data: mb})
	}
	await(t, "the dropped message to be counted", func() bool { return a.Stats().Refused == 1 })
	if log.count("ERROR", "ReassemblyBytesMax") != 1 {
		t.Error(log)
	}
	if a.Stats().Unclaimed != 0 {
		t.Error("the message arrived")
	}
	// The stream remains open, and messages within the limit arrive.
	for i := range uint64(6) {
		send(chunk{group: 1, size: 6 << 20, offset: i << 20, data: mb})
	}
	await(t, "the next message", func() bool { return a.Stats().Unclaimed == 1 })
	alive()
}

// TestLyingLengths sends frames of HTTP/2 and of gRPC with lengths of up to 4 GiB.
func TestLyingLengths(t *testing.T) {
	p := newPKI(t)
	a, _, alive := pair(t, p, nil)
	cert, err := tls.LoadX509KeyPair(evilFiles(p).Cert, evilFiles(p).Key)
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 20 {
		conn, err := tls.Dial("tcp", a.Addr().String(), &tls.Config{Certificates: []tls.Certificate{cert}, InsecureSkipVerify: true, NextProtos: []string{"h2"}})
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(conn, http2.ClientPreface)
		f := http2.NewFramer(conn, conn)
		f.WriteSettings()
		h := &hello{protocol: protocol, topology: "bank", version: "1", trustDomain: "example.org", node: "evil", to: "n1", incarnation: 1}
		var block bytes.Buffer
		headers := hpack.NewEncoder(&block)
		for _, field := range [][2]string{
			{":method", "POST"}, {":scheme", "https"}, {":path", methodCarry}, {":authority", "n1"}, {"te", "trailers"},
			{"content-type", "application/grpc+topogen"}, {helloKey, base64Of(h.append(nil))},
		} {
			headers.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]})
		}
		f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true})
		f.WriteData(1, false, binary.BigEndian.AppendUint32([]byte{0}, 1<<32-1)) // a gRPC message of 4 GiB
		conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		for ended := false; !ended; {
			frame, err := f.ReadFrame()
			if err != nil {
				t.Fatal(err)
			}
			switch frame := frame.(type) {
			case *http2.HeadersFrame:
				ended = frame.StreamEnded()
			case *http2.RSTStreamFrame:
				ended = true
			}
		}
		conn.Write(bytes.Repeat([]byte{0xff}, 1<<16)) // a frame of HTTP/2 of 16 MiB
		io.Copy(io.Discard, conn)                     // the node ends the connection
		conn.Close()
	}
	alive()
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 256<<20 {
		t.Errorf("20 frames with wrong lengths caused %d bytes of allocations", grown)
	}
	if a.Stats().Refused < 20 {
		t.Errorf("%+v", a.Stats())
	}
}

// TestStrangersOnTheWire: connections that send nothing or random data, before or after
// the handshake, are closed.
func TestStrangersOnTheWire(t *testing.T) {
	both(t, func(t *testing.T, p *pki) {
		a, _, alive := pair(t, p, nil)
		say := func(conn net.Conn, b []byte) {
			conn.SetDeadline(time.Now().Add(20 * time.Second))
			conn.Write(b)
			if n, err := io.Copy(io.Discard, conn); err != nil && strings.Contains(err.Error(), "timeout") {
				t.Errorf("%q: still open after %d bytes: %v", b[:min(len(b), 20)], n, err)
			}
			conn.Close()
		}
		for _, text := range []string{
			"GET / HTTP/1.1\r\nHost: n1\r\n\r\n",
			"\x16\x03\x01\xff\xff" + strings.Repeat("\xff", 1<<16),
			http2.ClientPreface + strings.Repeat("\xff", 1<<16),
			strings.Repeat("\x00", 1<<16),
		} {
			conn, err := net.Dial("tcp", a.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			say(conn, []byte(text))
			if p == nil {
				continue
			}
			// TLS without a certificate, and an old version of TLS.
			for _, config := range []*tls.Config{{InsecureSkipVerify: true}, {InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}} {
				if conn, err := tls.Dial("tcp", a.Addr().String(), config); err == nil {
					say(conn, []byte(text))
				}
			}
		}
		alive()
		if p != nil && a.Stats().Refused == 0 {
			t.Error("no connection was refused")
		}
	})
}

// TestSilentConnectionsEnd: silent connections are closed after the handshake timeout,
// and their number is limited.
func TestSilentConnectionsEnd(t *testing.T) {
	speed.Landing(t)
	p := newPKI(t)
	a, log, alive := pair(t, p, nil)
	var open []net.Conn
	for range connectionsMax + 100 {
		conn, err := net.Dial("tcp", a.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, conn)
	}
	await(t, "connections beyond the limit to be refused", func() bool { return a.Stats().Refused >= 100 })
	if log.count("too many connections") != 1 {
		t.Error(log)
	}
	alive()
	var ended sync.WaitGroup
	for _, conn := range open {
		ended.Go(func() {
			conn.SetReadDeadline(time.Now().Add(handshakeTimeout + 10*time.Second))
			if _, err := io.Copy(io.Discard, conn); err != nil && strings.Contains(err.Error(), "timeout") {
				t.Error("the connection is still open")
			}
			conn.Close()
		})
	}
	ended.Wait()
	alive()
	b := start(t, p.config(t, "n4"))
	b.SetPeer("n1", a.Addr().String())
	await(t, "a peer to be connected again", func() bool { return connected(b, a) })
}

// TestUnidentifiedClientsKeepNoPeerOut: while unidentified clients use all connections, a
// starting node can connect, and a connected peer remains.
func TestUnidentifiedClientsKeepNoPeerOut(t *testing.T) {
	both(t, func(t *testing.T, p *pki) {
		a, log, alive := pair(t, p, nil)
		for range connectionsMax + 10 {
			conn, err := net.Dial("tcp", a.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
		}
		await(t, "all connections to be in use", func() bool { return log.count("too many connections") == 1 })
		before := time.Now()
		b := start(t, p.config(t, "n4"))
		b.SetPeer("n1", a.Addr().String())
		await(t, "the starting node to be connected", func() bool { return connected(b, a) })
		if since := time.Since(before); since >= handshakeTimeout {
			t.Errorf("it took %v, until the unidentified connections timed out", since)
		}
		alive()
		if log.count("use of closed network connection") > 0 {
			t.Errorf("connections that this node has closed are logged as refused:\n%s", log)
		}
	})
}

// TestStrangersHideNoErrors: a refusal is logged although the host was refused for another
// reason in the same minute, and a warning about a peer is logged although as many hosts as
// the log remembers were refused.
func TestStrangersHideNoErrors(t *testing.T) {
	p := newPKI(t)
	foreign := newPKI(t)
	a, log, alive := pair(t, p, nil)
	files := foreign.issue("n4", node("n4"), time.Hour)
	cert, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		t.Fatal(err)
	}
	for want, knock := range map[string]func(conn net.Conn){
		"first record does not look like a TLS handshake": func(conn net.Conn) { _, _ = io.WriteString(conn, "GET / HTTP/1.1\r\n\r\n") },
		"client offered only unsupported versions": func(conn net.Conn) {
			_ = tls.Client(conn, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}).Handshake()
		},
		"certificate signed by unknown authority": func(conn net.Conn) {
			_ = tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}, Certificates: []tls.Certificate{cert}}).Handshake()
		},
	} {
		for range 3 {
			conn, err := net.Dial("tcp", a.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			knock(conn)
			_, _ = io.Copy(io.Discard, conn) // until the listener has refused it
			_ = conn.Close()
		}
		await(t, want, func() bool { return log.count("ERROR", "refused a connection", want) == 1 })
	}
	alive()
	for i := range 2 * loglimit.KeysMax {
		a.refuse(&net.TCPAddr{IP: net.IPv4(10, 0, byte(i>>8), byte(i)), Port: 1}, "TLS", errors.New("garbage"))
	}
	a.Send("n9", number(0))
	if log.count("to a node whose address is not known") != 1 {
		t.Error("strangers have hidden a warning about a peer")
	}
}

// addressed is a connection from a port.
type addressed struct {
	net.Conn
	port int
}

func (a addressed) RemoteAddr() net.Addr { return &net.TCPAddr{Port: a.port} }

// TestConnectionsEndOldestFirst: the oldest unidentified connection is closed,
// identified ones remain.
func TestConnectionsEndOldestFirst(t *testing.T) {
	l := newConnections(nil, 2, nil)
	at := func(port int) net.Addr { return addressed{port: port}.RemoteAddr() }
	join := func(port, end int) { // 0: none is closed
		t.Helper()
		c, old := l.add(addressed{port: port})
		got := 0
		if old != nil {
			got = old.RemoteAddr().(*net.TCPAddr).Port
		}
		if got != end || (c == nil) != (end == port) {
			t.Errorf("for connection %d, %d was closed, want %d", port, got, end)
		}
	}
	join(1, 0)
	join(2, 0)
	l.acquire(at(1))
	join(3, 2)
	l.acquire(at(3))
	join(4, 4)
	l.acquire(at(1))
	l.release(at(1)) // one of two uses
	join(5, 5)
	l.release(at(1))
	join(6, 1)
	if len(l.open) != 2 || l.idle[roleStranger].Len() != 1 {
		t.Errorf("%d connections are open, %d of them of strangers", len(l.open), l.idle[roleStranger].Len())
	}
}

// TestConnectionsByRole: strangers make room first, then clients, operators and idle nodes, but some
// strangers always have room for a handshake. Of the strangers, the host with most connections makes room.
func TestConnectionsByRole(t *testing.T) {
	l := newConnections(nil, 8, nil)
	l.strangersKept = 2
	at := func(host byte, port int) net.Conn { return addressedHost{addressed{port: port}, host} }
	add := func(host byte, port int) (closed int) {
		t.Helper()
		if _, old := l.add(at(host, port)); old != nil {
			return old.RemoteAddr().(*net.TCPAddr).Port
		}
		return 0
	}
	names := []certs.ID{{Node: "n2"}, {Operator: "ann"}, {Client: "web"}, {Client: "app"}}
	for i, id := range names {
		add(1, i+1)
		if _, ok := l.identify(at(1, i+1).RemoteAddr(), id); !ok {
			t.Fatal(id)
		}
	}
	add(2, 5)
	add(1, 6)
	add(1, 7)
	add(1, 8)
	var closed []int
	for port := 9; port < 14; port++ {
		closed = append(closed, add(1, port))
	}
	for i := range 2 { // then strangers have no more than what is kept for them
		port := 13 - i
		if _, ok := l.identify(at(1, port).RemoteAddr(), certs.ID{Node: "n3"}); !ok {
			t.Fatal(port)
		}
		l.acquire(at(1, port).RemoteAddr())
	}
	for port := 14; port < 20; port++ {
		closed = append(closed, add(1, port))
	}
	if want := []int{6, 7, 8, 9, 10, 3, 11, 14, 15, 16, 17}; !slices.Equal(closed, want) {
		t.Errorf("connections were closed in the order %v, want %v", closed, want)
	}
}

// addressedHost is a connection from a host.
type addressedHost struct {
	addressed
	host byte
}

func (a addressedHost) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(10, 0, 0, a.host), Port: a.port}
}

// TestManyStrangers: a limited number of nodes that are not in the configuration may
// connect, and they are forgotten when they disconnect.
func TestManyStrangers(t *testing.T) {
	var none *pki
	a, _, alive := pair(t, none, nil)
	var streams []gogrpc.ClientStream
	join := func(i int) error {
		h := &hello{protocol: protocol, topology: "bank", version: "1", node: fmt.Sprintf("x%d", i), to: "n1", incarnation: 1}
		s, err := raw(t, a, nil, h.metadata())
		if err != nil {
			return err
		}
		if headers, err := s.Header(); err == nil && len(headers.Get(helloKey)) == 1 {
			streams = append(streams, s)
			return nil
		}
		return s.RecvMsg(new([]byte))
	}
	for i := range unconfiguredMax {
		if err := join(i); err != nil {
			t.Fatal(err)
		}
	}
	if err := join(unconfiguredMax); err == nil || !strings.Contains(err.Error(), "is not in the configuration") {
		t.Errorf("%v", err)
	}
	alive()
	if n := len(a.Stats().Peers); n != unconfiguredMax+1 {
		t.Errorf("%d peers", n)
	}
	for _, s := range streams {
		s.CloseSend()
	}
	await(t, "the nodes to be forgotten", func() bool { return len(a.Stats().Peers) == 1 })
	if err := join(unconfiguredMax); err != nil {
		t.Error(err)
	}
}

// TestPeerThatTakesNothing: a peer that does not answer, or answers random data, is
// given up.
func TestPeerThatTakesNothing(t *testing.T) {
	speed.Landing(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	var log logged
	c := (*pki)(nil).config(t, "n1")
	c.Logger = log.logger()
	a := start(t, c)
	a.SetPeer("n2", silent.Addr().String())
	await(t, "the node to give up", func() bool {
		a.Send("n2", number(0))
		return log.count("WARN", "no answer within 5s") == 1 && a.Stats().Dropped > 0
	})
}
