package memberlist

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/child"
	"github.com/topogen/topogen/internal/test/siege"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/member"
	"github.com/topogen/topogen/runtime/transport"
	"github.com/topogen/topogen/runtime/transport/grpc"
)

var (
	memberGroup = transport.GroupID("siege", "member")
	echoGroup   = transport.GroupID("siege", "echo")
)

func TestMain(m *testing.M) {
	child.Run(map[string]func() error{"besieged": runBesieged})
	os.Exit(m.Run())
}

func listen(node string, log *slog.Logger) (*grpc.Transport, error) {
	return grpc.Listen(grpc.Config{Node: node, Topology: "siege", Version: "1", Address: "127.0.0.1:0", Logger: log})
}

// detect starts failure detection on a transport.
func detect(n *grpc.Transport, node, first string, log *slog.Logger) (*Detector, error) {
	d, err := New(member.Settings{
		Node: member.Node{Name: node, Address: n.Addr().String()}, First: map[string]string{"n1": first},
		Config: member.Config{Profile: member.ProfileLocal}, Transport: n, Group: memberGroup, Logger: log,
	})
	if err != nil {
		return nil, err
	}
	return d, d.Start()
}

// runBesieged runs a node with failure detection, which returns messages of other nodes.
func runBesieged() error {
	n, err := listen("n1", slog.Default())
	if err != nil {
		return err
	}
	n.Handle(echoGroup, func(from string, payloads [][]byte) {
		for _, p := range payloads {
			n.Send(from, transport.Message{Group: echoGroup, Payload: p})
		}
	})
	if _, err := detect(n, "n1", n.Addr().String(), slog.Default()); err != nil {
		return err
	}
	siege.Ready(n.Addr().String())
	return nil
}

// besieged is a node in a child process, with another node that it detects.
type besieged struct {
	*siege.Process
	peer    *Detector
	echo    func(context.Context) error
	hostile *grpc.Transport
}

func startBesieged(t *testing.T) *besieged {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	b := &besieged{Process: siege.Start(t, "besieged")}
	n2, err := listen("n2", quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n2.Close() })
	var mu sync.Mutex
	var last uint64
	waiting := map[uint64]chan struct{}{}
	n2.Handle(echoGroup, func(_ string, payloads [][]byte) {
		mu.Lock()
		defer mu.Unlock()
		for _, p := range payloads {
			if c := waiting[binary.BigEndian.Uint64(p)]; c != nil {
				close(c)
				delete(waiting, binary.BigEndian.Uint64(p))
			}
		}
	})
	if b.peer, err = detect(n2, "n2", b.Addresses[0], quiet); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.peer.Close() })
	b.echo = func(ctx context.Context) error {
		mu.Lock()
		last++
		number, back := last, make(chan struct{})
		waiting[number] = back
		mu.Unlock()
		n2.Send("n1", transport.Message{Group: echoGroup, Payload: binary.BigEndian.AppendUint64(nil, number)})
		select {
		case <-back:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for ready := false; !ready; { // both directions are connected, and n2 sees n1
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		ready = b.echo(ctx) == nil && b.alive(ctx) == nil
		cancel()
		if t.Context().Err() != nil {
			t.Fatal("the nodes are not connected")
		}
	}
	if b.hostile, err = listen("n3", quiet); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.hostile.Close() })
	b.hostile.SetPeer("n1", b.Addresses[0])
	return b
}

// alive fails if failure detection does not see the besieged node.
func (b *besieged) alive(context.Context) error {
	for _, m := range b.peer.Members() {
		if m.Name == "n1" && m.State == member.Alive {
			return nil
		}
	}
	return errors.New("n1 is not alive")
}

// send sends a payload as a member.
func (b *besieged) send(payload []byte) {
	b.hostile.Send("n1", transport.Message{Group: memberGroup, Payload: payload})
}

// attack calls send again and again, a few hundred times a second.
func (b *besieged) attack(t *testing.T, memoryMax int64, send func(i int)) {
	t.Helper()
	var i atomic.Int64
	siege.Run(t, siege.Siege{
		Server: b.Process,
		Victims: []siege.Victim{
			{Name: "a node", Deadline: 5 * time.Second, Call: b.echo},
			{Name: "failure detection", Rate: 20, Call: b.alive},
		},
		Attack: func(ctx context.Context) {
			pause := time.NewTicker(2 * time.Millisecond)
			defer pause.Stop()
			for ctx.Err() == nil {
				send(int(i.Add(1)))
				<-pause.C
			}
		},
		For:       speed.Pick(t, time.Second, time.Second, 20*time.Second),
		MemoryMax: memoryMax,
	})
	t.Logf("%d attacks, %d lines in the log", i.Load(), strings.Count(b.Log(), "\n"))
}

// TestSiege attacks failure detection as a node, in each way that the table of budgets in SECURITY.md
// names. No other identity reaches it.
func TestSiege(t *testing.T) {
	const idle = 32 << 20 // the node's own garbage
	ping := append([]byte{payloadPacket}, "\x00\x82\xa5SeqNo\x07\xa4Node\xa2n1"...)
	cells := map[string]func(*testing.T, *besieged, siege.Cell){
		// Packets and streams that are too large.
		"bytes/node": func(t *testing.T, b *besieged, c siege.Cell) {
			c.Figures(t, siege.Bytes(packetMax), siege.Bytes(streamMax))
			packet := append([]byte{payloadPacket}, make([]byte, packetMax)...)
			b.attack(t, idle+2*streamMax, func(i int) {
				b.send(packet)
				for _, p := range streamOf(byte(i), make([]byte, 256<<10)) {
					b.send(p)
				}
			})
		},
		// Streams that stay open.
		"connections/node": func(t *testing.T, b *besieged, c siege.Cell) {
			c.Figures(t, siege.Count(peerMax), siege.Count(streamsMax))
			b.attack(t, idle, func(i int) { b.send(numbered(uint64(i), 0, []byte{typePushPull})) })
		},
		// As much as the streams may keep, of exchanges that announce more.
		"memory/node": func(t *testing.T, b *besieged, c siege.Cell) {
			c.Figures(t, siege.Bytes(peerMax*streamMax))
			exchange := pushPull(streamMax/nodeMin/2, 0, bytes.Repeat([]byte{0x80}, segmentMax-100)...)
			b.attack(t, idle+2*peerMax*streamMax, func(i int) {
				number, sequence := uint64(i%peerMax), uint32(i/peerMax)
				b.send(numbered(number, sequence, exchange))
			})
		},
		// Valid messages without end.
		"processor time/node": func(t *testing.T, b *besieged, c siege.Cell) {
			c.Figures(t, siege.Count(packetsMax))
			b.attack(t, idle, func(int) {
				for range 32 {
					b.send(ping)
				}
			})
		},
		"log keys/node": func(t *testing.T, b *besieged, c siege.Cell) {
			c.Figures(t, siege.Count(1), siege.Time(time.Minute))
			b.attack(t, idle, func(i int) {
				b.send([]byte{payloadPacket, byte(i), 1, 2, 3})
				b.send(numbered(uint64(i), 0, []byte{byte(i)}))
			})
			if n := strings.Count(b.Log(), "WARN"); n > 2 {
				t.Errorf("%d warnings are in the log", n)
			}
		},
		// Messages that the library answers.
		"answers/node": func(t *testing.T, b *besieged, c siege.Cell) {
			c.Figures(t)
			exchange := pushPull(0, 0)
			b.attack(t, idle, func(i int) {
				for range 8 {
					b.send(ping)
				}
				b.send(numbered(uint64(i), 0, exchange))
			})
		},
	}
	tests := map[string]func(*testing.T, siege.Cell){}
	for name, test := range cells {
		tests[name] = func(t *testing.T, c siege.Cell) { test(t, startBesieged(t), c) }
	}
	siege.Cells(t, "memberlist", tests)
}

// numbered returns a segment of a stream that a peer opens and leaves open.
func numbered(number uint64, sequence uint32, data []byte) []byte {
	b := binary.BigEndian.AppendUint64([]byte{payloadStream, flagOpened}, number)
	return append(binary.BigEndian.AppendUint32(b, sequence), data...)
}
