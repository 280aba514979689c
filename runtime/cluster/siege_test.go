package cluster

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/siege"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/transport"
	"github.com/topogen/topogen/runtime/transport/grpc"
)

// The limits of package grpc, as the table has them.
const (
	connectionsMax      = 1024
	strangersKept       = connectionsMax / 4
	ownerConnectionsMax = 320
	handshakeBytesMax   = 32 << 10
	guestMessageMax     = 320 << 10
	guestWindow         = 256 << 10
	guestStreamsMax     = 4
	frameBytesMax       = 1088 << 10
	nodeWindow          = 8 << 20
	logKeysMax          = 256
	strangersMemory     = 256 << 20
	incompleteMax       = 1 << 30
)

const (
	idleMemory = 32 << 20 // the node's own garbage and that of its victims
	heldWire   = 64 << 10 // of a connection with TLS and HTTP/2
)

// TestSiege attacks a node in each way that the table of budgets in SECURITY.md names. Other nodes,
// clients and operators must be served in the meantime.
func TestSiege(t *testing.T) {
	tests := map[string]func(*testing.T, *besieged, siege.Cell){
		"bytes/stranger":          strangerBytes,
		"connections/stranger":    strangerConnections,
		"memory/stranger":         strangerMemory,
		"processor time/stranger": strangerProcessor,
		"log keys/stranger":       strangerLog,
		"answers/stranger":        strangerAnswers,
		"log keys/client":         clientLog,
		"answers/client":          clientAnswers,
		"processor time/client":   clientProcessor,
		"log keys/operator":       func(t *testing.T, b *besieged, c siege.Cell) { wrongCalls(t, b, c, "", "mallory", "") },
		"answers/operator":        operatorAnswers,
		"processor time/operator": operatorProcessor,
		"bytes/node":              nodeBytes,
		"memory/node":             nodeMemory,
		"processor time/node":     nodeProcessor,
		"log keys/node":           nodeLog,
		"answers/node":            func(t *testing.T, b *besieged, c siege.Cell) { wrongCalls(t, b, c, "", "", "n3") },
	}
	for identity, names := range map[string][3]string{"client": {"eve", "", ""}, "operator": {"", "mallory", ""}, "node": {"", "", "n3"}} {
		tests["connections/"+identity] = func(t *testing.T, b *besieged, c siege.Cell) { ownerConnections(t, b, c, names) }
		if identity != "node" {
			tests["bytes/"+identity] = func(t *testing.T, b *besieged, c siege.Cell) { guestBytes(t, b, c, names) }
			tests["memory/"+identity] = func(t *testing.T, b *besieged, c siege.Cell) { guestMemory(t, b, c, names) }
		}
	}
	cells := map[string]func(*testing.T, siege.Cell){}
	for name, test := range tests {
		cells[name] = func(t *testing.T, c siege.Cell) { test(t, startBesieged(t), c) }
	}
	siege.Cells(t, "nodes", cells)
}

// attack runs a siege of the node.
func (b *besieged) attack(t *testing.T, s siege.Siege) siege.Result {
	t.Helper()
	s.Server, s.Victims = b.Process, b.victims(t)
	s.For = speed.Pick(t, time.Second, time.Second, 20*time.Second)
	return siege.Run(t, s)
}

// stalled returns an attack with connections that send n bytes of a handshake message which announces more.
func stalled(b *besieged, c *crowd, announces, n int) func() {
	// A record of TLS has at most 16 KiB.
	message := append([]byte{1, byte(announces >> 16), byte(announces >> 8), byte(announces)}, make([]byte, n)...)
	var records []byte
	for len(message) > 0 {
		part := message[:min(len(message), 1<<14)]
		records = append(append(records, 22, 3, 1, byte(len(part)>>8), byte(len(part))), part...)
		message = message[len(part):]
	}
	return func() {
		if conn, err := dialFrom(attackerHost, b.address); err == nil {
			_, _ = conn.Write(records)
			c.add(conn)
		}
	}
}

// strangerBytes: strangers send chains of certificates that are larger than a handshake may be, all but the last bytes.
func strangerBytes(t *testing.T, b *besieged, c siege.Cell) {
	c.Figures(t, siege.Bytes(handshakeBytesMax), siege.Time(5*time.Second))
	const connections = 200
	var open crowd
	defer open.close()
	pair := strangers(t)
	for range 15 {
		pair.Certificate = append(pair.Certificate, make([]byte, 16<<10))
	}
	b.attack(t, siege.Siege{
		Prepare: func() {
			gather(connections, func(int) {
				conn, err := dialFrom(attackerHost, b.address)
				if err != nil {
					return
				}
				open.add(conn)
				_ = conn.SetDeadline(time.Now().Add(time.Second)) // the listener answers nothing
				_ = tls.Client(&shortConn{conn, 240 << 10}, &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true, NextProtos: []string{"h2"}}).Handshake()
			})
		},
		MemoryMax: idleMemory + connections*(heldWire+2*64<<10),
	})
}

// strangerConnections: strangers open more connections than there are, and ever new ones.
func strangerConnections(t *testing.T, b *besieged, c siege.Cell) {
	c.Figures(t, siege.Count(strangersKept), siege.Count(connectionsMax))
	var open crowd
	defer open.close()
	connect := func() {
		if conn, err := dialFrom(attackerHost, b.address); err == nil {
			open.add(conn)
		}
	}
	b.attack(t, siege.Siege{
		Prepare: func() { gather(connectionsMax+200, func(int) { connect() }) },
		Attack: again(func() {
			if conn, err := dialFrom(attackerHost, b.address); err == nil {
				_ = conn.(*net.TCPConn).SetLinger(0)
				_ = conn.Close()
			}
			<-time.After(time.Millisecond) // the attacker has the same cores
		}),
		MemoryMax: strangersMemory,
	})
}

// strangerMemory: strangers use all connections, and keep an incomplete handshake in each.
func strangerMemory(t *testing.T, b *besieged, c siege.Cell) {
	c.Figures(t, siege.Bytes(strangersMemory))
	var open crowd
	defer open.close()
	connect := stalled(b, &open, 1<<16, 63<<10)
	b.attack(t, siege.Siege{Prepare: func() { gather(connectionsMax, func(int) { connect() }) }, MemoryMax: strangersMemory})
}

// strangerProcessor: strangers send the first message of a handshake again and again, which costs
// them nothing.
func strangerProcessor(t *testing.T, b *besieged, c siege.Cell) {
	c.Figures(t, siege.Count(1))
	here, there := net.Pipe()
	go func() {
		_ = tls.Client(there, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}).Handshake()
	}()
	hello := make([]byte, 8<<10)
	n, err := here.Read(hello)
	if err != nil {
		t.Fatal(err)
	}
	here.Close()
	var sent atomic.Int64
	b.attack(t, siege.Siege{
		Attackers: 2,
		Attack: again(func() {
			conn, err := dialFrom(attackerHost, b.address)
			if err != nil {
				return
			}
			_ = conn.(*net.TCPConn).SetLinger(0)
			_, _ = conn.Write(hello[:n])
			_ = conn.SetDeadline(time.Now().Add(200 * time.Millisecond))
			_, _ = conn.Read(hello[n:])
			sent.Add(1)
			_ = conn.Close()
		}),
		CPUMax: 1250 * time.Millisecond,
	})
	t.Log(sent.Load(), "handshakes")
}

// strangerLog: more strangers are refused than the log remembers, and then a client that calls a service of
// operators.
func strangerLog(t *testing.T, b *besieged, c siege.Cell) {
	c.Figures(t, siege.Count(logKeysMax), siege.Time(time.Minute), siege.Count(1))
	wrong := b.pair(t, "eve", "", "")
	knock := func(i int) {
		conn, err := dialFrom(fmt.Sprintf("127.1.%d.%d", i>>8&0xff, i&0xff), b.address)
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\n\r\n")
		_, _ = io.Copy(io.Discard, conn)
		_ = conn.Close()
	}
	last := logKeysMax + 50
	b.attack(t, siege.Siege{
		Prepare: func() { gather(last, knock) },
		Attack:  again(func() { last++; knock(last) }),
	})
	if n := lines(b.Log(), "refused a connection"); n > logKeysMax {
		t.Errorf("%d refusals of %d were logged", n, last)
	}
	w := b.wire(wrong)
	if w == nil {
		t.Fatal("a client was refused")
	}
	defer w.Close()
	_ = w.begin(showMethod)
	for end := time.Now().Add(10 * time.Second); lines(b.Log(), "client/eve") == 0; {
		if time.Now().After(end) {
			t.Fatal("strangers have hidden the refusal of a client")
		}
		<-time.After(time.Millisecond)
	}
}

// strangerAnswers: strangers get no answer.
func strangerAnswers(t *testing.T, b *besieged, c siege.Cell) {
	c.Figures(t)
	pair := strangers(t)
	var answered, refused atomic.Int64
	b.attack(t, siege.Siege{Attack: again(func() {
		w := b.wire(pair)
		if w == nil {
			refused.Add(1)
			return
		}
		answered.Add(1)
		_ = w.Close()
	})})
	if answered.Load() > 0 || refused.Load() == 0 {
		t.Errorf("%d of %d strangers have got an answer", answered.Load(), answered.Load()+refused.Load())
	}
}

// ownerConnections: a certificate opens more connections than it may.
func ownerConnections(t *testing.T, b *besieged, c siege.Cell, names [3]string) {
	c.Figures(t, siege.Count(ownerConnectionsMax))
	var open crowd
	defer open.close()
	pair := b.pair(t, names[0], names[1], names[2])
	var accepted atomic.Int64
	connect := func(int) {
		if w := b.wire(pair); w != nil {
			accepted.Add(1)
			open.add(w)
		}
	}
	b.attack(t, siege.Siege{
		Prepare:   func() { gather(350, connect) },
		Attack:    again(func() { connect(0) }),
		MemoryMax: idleMemory + ownerConnectionsMax*(heldWire+2*64<<10),
	})
	if n := accepted.Load(); n > ownerConnectionsMax {
		t.Errorf("%d connections of a certificate were accepted", n)
	}
}

// methodOf returns a method that a client or an operator may call, and its metadata.
func methodOf(names [3]string) (method string, metadata []string) {
	if names[0] != "" {
		return connectMethod, []string{clientKey, strings.Repeat("E", clientNameMin)}
	}
	return showMethod, nil
}

// guestBytes: a client or an operator sends messages that are too large, as fast as it can.
func guestBytes(t *testing.T, b *besieged, c siege.Cell, names [3]string) {
	c.Figures(t, siege.Bytes(guestMessageMax), siege.Bytes(guestWindow), siege.Count(guestStreamsMax))
	pair := b.pair(t, names[0], names[1], names[2])
	method, metadata := methodOf(names)
	b.attack(t, siege.Siege{
		Attackers: 2,
		Attack: func(ctx context.Context) {
			for ctx.Err() == nil {
				w := b.wire(pair)
				if w == nil {
					continue
				}
				for range 4 {
					_ = w.begin(method, metadata...)
					_ = w.send(announced(guestMessageMax+1, 64<<10), false)
				}
				_ = w.Close()
			}
		},
		MemoryMax: idleMemory + 8<<20,
	})
}

// guestMemory: a client or an operator opens all calls of many connections, and sends as much as it may of messages
// that it does not complete.
func guestMemory(t *testing.T, b *besieged, c siege.Cell, names [3]string) {
	c.Figures(t, "1.3 MiB")
	var open crowd
	defer open.close()
	const connections = 60
	pair := b.pair(t, names[0], names[1], names[2])
	method, metadata := methodOf(names)
	b.attack(t, siege.Siege{
		Prepare: func() {
			gather(connections, func(i int) {
				w := b.wire(pair)
				if w == nil {
					return
				}
				open.add(w)
				for k := range 4 {
					if metadata != nil {
						metadata = []string{clientKey, fmt.Sprintf("%0*dE", clientNameMin, 10*i+k)}
					}
					_ = w.begin(method, metadata...)
					_ = w.send(announced(guestMessageMax, guestMessageMax-1), false)
				}
			})
		},
		MemoryMax: idleMemory + connections*(heldWire+4*330<<10),
	})
}

// wrongCalls: a process calls what it may not call, in ever new connections.
func wrongCalls(t *testing.T, b *besieged, c siege.Cell, client, operator, node string) {
	pair := b.pair(t, client, operator, node)
	calls := 0
	b.attack(t, siege.Siege{Attack: again(func() {
		w := b.wire(pair)
		if w == nil {
			return
		}
		for _, method := range []string{"/topogen.transport.v1.Transport/Carry", showMethod, removeMethod, placesMethod, "/topogen.None/None"} {
			_ = w.begin(method)
			calls++
		}
		_ = w.Close()
	})})
	if n := lines(b.Log(), "refused a connection"); n == 0 || n > 3 {
		t.Errorf("%d of %d calls were logged", n, calls)
	}
}

// clientLog: a client chooses a new name for each connection, and sends nonsense.
func clientLog(t *testing.T, b *besieged, c siege.Cell) {
	c.Figures(t, siege.Count(1), siege.Time(time.Minute))
	pair := b.pair(t, "eve", "", "")
	i := 0
	w := b.wire(pair)
	b.attack(t, siege.Siege{Attack: again(func() {
		i++
		if w == nil {
			w = b.wire(pair)
			return
		}
		err := w.begin(connectMethod, clientKey, fmt.Sprintf("%0*dE", clientNameMin, i))
		if err == nil {
			err = w.send(bytesMessage([]byte("\x00nonsense")), true)
		}
		if err != nil {
			w = nil
		}
		<-time.After(time.Millisecond)
	})})
	if n := lines(b.Log(), "client"); n > 10 {
		t.Errorf("%d lines are in the log, after %d connections of a client", n, i)
	}
	t.Log(i, "streams,", lines(b.Log(), ""), "lines")
}

// clientAnswers: a client asks for the address table in many calls at the same time.
func clientAnswers(t *testing.T, b *besieged, c siege.Cell) {
	c.Figures(t, siege.Count(ownerAnswersMax), siege.Count(answersMax))
	files := b.files("eve", "", "")
	b.attack(t, siege.Siege{
		Attackers: 16,
		Attack: func(ctx context.Context) {
			connection, err := grpc.Dial(b.address, files)
			if err != nil {
				return
			}
			defer connection.Close()
			again(func() { _ = askPlaces(ctx, connection) })(ctx)
		},
	})
}

// clientProcessor: a client sends frames as fast as it can.
func clientProcessor(t *testing.T, b *besieged, c siege.Cell) {
	c.Figures(t, siege.Count(guestStreamsMax))
	pair := b.pair(t, "eve", "", "")
	var number atomic.Int64
	b.attack(t, siege.Siege{
		Attack: func(ctx context.Context) {
			for ctx.Err() == nil {
				w := b.wire(pair)
				if w == nil {
					continue
				}
				for range 100 {
					_ = w.begin(connectMethod, clientKey, fmt.Sprintf("%0*dE", clientNameMin, number.Add(1)))
					if w.send(bytesMessage(make([]byte, 60<<10)), true) != nil {
						break
					}
				}
				_ = w.Close()
			}
		},
	})
}

// operatorAnswers: an operator takes nothing of its answers.
func operatorAnswers(t *testing.T, b *besieged, c siege.Cell) {
	c.Figures(t, siege.Count(ownerAnswersMax), siege.Count(answersMax), siege.Time(time.Minute))
	var open crowd
	defer open.close()
	pair := b.pair(t, "", "mallory", "")
	b.attack(t, siege.Siege{Prepare: func() {
		for range 2 {
			w := b.wire(pair)
			if w == nil {
				t.Error("an operator was refused")
				return
			}
			open.add(w)
			for range guestStreamsMax {
				_ = w.begin(showMethod)
				_ = w.send(bytesMessage([]byte(`{"show":"table"}`)), true)
			}
		}
	}})
}

// operatorProcessor: an operator asks for the largest answer all the time.
func operatorProcessor(t *testing.T, b *besieged, c siege.Cell) {
	c.Figures(t, siege.Count(guestStreamsMax))
	files := b.files("", "mallory", "")
	b.attack(t, siege.Siege{Attackers: 4, Attack: func(ctx context.Context) {
		again(func() { _, _ = Operate(ctx, b.address, files, Command{Show: ShowTable}) })(ctx)
	}})
}

// hostileNode connects a node.
func (b *besieged) hostileNode(t *testing.T) *grpc.Transport {
	t.Helper()
	n, err := grpc.Listen(grpc.Config{
		Node: "n3", Topology: "program", Version: wireVersion, TrustDomain: "program", Address: "127.0.0.1:0",
		TLS: b.files("", "", "n3"), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	n.SetPeer("n1", b.address)
	return n
}

// flood sends messages without end.
func flood(n *grpc.Transport, group uint64, size int) func(context.Context) {
	m := transport.Message{Group: group, Payload: make([]byte, size)}
	return func(ctx context.Context) {
		pause := time.NewTicker(time.Millisecond)
		defer pause.Stop()
		for ctx.Err() == nil {
			for range 64 {
				n.Send("n1", m)
			}
			<-pause.C
		}
	}
}

func nodeBytes(t *testing.T, b *besieged, c siege.Cell) {
	c.Figures(t, siege.Count(frameBytesMax>>10)+" KiB", siege.Bytes(nodeWindow))
	b.attack(t, siege.Siege{Attack: flood(b.hostileNode(t), echoGroup, 1<<20), MemoryMax: 256 << 20})
}

func nodeProcessor(t *testing.T, b *besieged, c siege.Cell) {
	c.Figures(t, siege.Count(1))
	b.attack(t, siege.Siege{Attack: flood(b.hostileNode(t), echoGroup, 1), MemoryMax: 256 << 20})
}

func nodeMemory(t *testing.T, b *besieged, c siege.Cell) {
	c.Figures(t, siege.Bytes(incompleteMax))
	n := b.hostileNode(t)
	m := transport.Message{Group: echoGroup, Payload: make([]byte, 100<<20)}
	b.attack(t, siege.Siege{Attack: again(func() { n.Send("n1", m); <-time.After(10 * time.Millisecond) }), MemoryMax: incompleteMax})
}

// nodeLog: a node sends nonsense to each group.
func nodeLog(t *testing.T, b *besieged, c siege.Cell) {
	c.Figures(t, siege.Count(1), siege.Time(time.Minute))
	n := b.hostileNode(t)
	i := uint64(0)
	b.attack(t, siege.Siege{Attack: again(func() {
		i++
		for _, group := range []uint64{transport.GroupID("program", "cluster/session"), transport.GroupID("program", "cluster/clients"), transport.GroupID("program", "member"), i} {
			n.Send("n1", transport.Message{Group: group, Payload: []byte("nonsense")})
		}
		<-time.After(100 * time.Microsecond)
	})})
	if got := lines(b.Log(), "n3"); got > 10 {
		t.Errorf("%d lines are in the log, after %d messages", got, i)
	}
	t.Log(i, "messages,", lines(b.Log(), ""), "lines")
}
