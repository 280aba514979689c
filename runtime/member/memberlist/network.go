package memberlist

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"sync"
	"time"

	ml "github.com/hashicorp/memberlist"

	"github.com/topogen/topogen/runtime/transport"
)

// Kinds of payloads: the first byte.
const (
	payloadPacket = 1 // and the packet
	payloadStream = 2 // and a segment of a stream
	payloadLeave  = 3 // and the boot id of the sender, which ends on purpose: 8 bytes
)

const (
	packetsMax = 1024     // packets that wait for the library, which drops packets itself when it is slow
	packetMax  = 64 << 10 // bytes of a packet: as with UDP
)

var errNoName = errors.New("memberlist: the receiver has no name")

// network is the transport of the library: it sends its packets and streams over a
// transport.Transport.
type network struct {
	name      string
	transport transport.Transport
	group     uint64
	packets   chan *ml.Packet
	accepted  chan net.Conn
	goodbye   func(name string, boot uint64)
	logger    *slog.Logger

	mu        sync.Mutex
	closed    bool
	addresses map[string]string // set in the transport
	names     map[string]string // by hostPort
	streams   map[streamID]*stream
	last      uint64               // number of the last stream of this node
	warned    map[string]time.Time // by node: when a malformed message was last logged
	running   sync.WaitGroup
}

var _ ml.NodeAwareTransport = (*network)(nil)

func newNetwork(name string, t transport.Transport, group uint64, logger *slog.Logger) *network {
	return &network{
		name: name, transport: t, group: group, logger: logger,
		packets: make(chan *ml.Packet, packetsMax), accepted: make(chan net.Conn, streamsMax),
		addresses: make(map[string]string), names: make(map[string]string), streams: make(map[streamID]*stream),
		warned: make(map[string]time.Time),
	}
}

// setPeer tells the transport the address of a node.
func (n *network) setPeer(name, address string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.names[hostPort(name)] = name
	if name != n.name {
		n.addresses[name] = address
		n.transport.SetPeer(name, address) // also the same again: the owner of the transport may have removed the peer while it was down
	}
}

// removePeer forgets a node.
func (n *network) removePeer(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.addresses, name)
	delete(n.names, hostPort(name))
	n.transport.RemovePeer(name)
}

func (n *network) receive(from string, payloads [][]byte) {
	n.mu.Lock()
	_, known := n.addresses[from]
	n.mu.Unlock()
	if !known {
		// The library answers before it has accepted the node as a member.
		if address, ok := n.transport.PeerAddress(from); ok {
			n.setPeer(from, address)
		}
	}
	for _, p := range payloads {
		switch {
		case len(p) > 1 && len(p) <= packetMax && p[0] == payloadPacket:
			if err := checkPacket(p[1:]); err != nil {
				n.refused(from, err)
				continue
			}
			select {
			case n.packets <- &ml.Packet{Buf: p[1:], From: addr{from}, Timestamp: time.Now()}:
			default: // as a full socket does
			}
		case len(p) > 0 && p[0] == payloadStream:
			n.receiveSegment(from, p[1:])
		case len(p) == 9 && p[0] == payloadLeave:
			n.goodbye(from, binary.BigEndian.Uint64(p[1:]))
		}
	}
}

// refused logs why a message was not passed to the library, once a minute for each node. A stream that has ended early is not
// malformed: a member may have crashed.
func (n *network) refused(from string, err error) {
	if !errors.Is(err, errAnnounced) && !errors.Is(err, errType) && !errors.Is(err, errForm) {
		return
	}
	n.mu.Lock()
	now := time.Now()
	maps.DeleteFunc(n.warned, func(_ string, at time.Time) bool { return now.Sub(at) >= time.Minute })
	_, warned := n.warned[from]
	if !warned {
		n.warned[from] = now
	}
	n.mu.Unlock()
	if !warned {
		n.logger.Warn("a message about members was dropped", "from", from, "err", err)
	}
}

// sayGoodbye tells a member that this process ends on purpose.
func (n *network) sayGoodbye(to string, boot uint64) {
	payload := binary.BigEndian.AppendUint64([]byte{payloadLeave}, boot)
	n.transport.Send(to, transport.Message{Group: n.group, Payload: payload, Class: transport.Urgent})
}

// nameOf returns the name of a node that the library addresses.
func (n *network) nameOf(a ml.Address) (string, error) {
	if a.Name != "" {
		return a.Name, nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if name, ok := n.names[a.Addr]; ok {
		return name, nil
	}
	return "", fmt.Errorf("%w: %s", errNoName, a.Addr)
}

func (n *network) WriteToAddress(b []byte, a ml.Address) (time.Time, error) {
	name, err := n.nameOf(a)
	if err != nil {
		return time.Time{}, err
	}
	payload := append([]byte{payloadPacket}, b...)
	n.transport.Send(name, transport.Message{Group: n.group, Payload: payload, Class: transport.Urgent})
	return time.Now(), nil
}

func (n *network) WriteTo(b []byte, a string) (time.Time, error) {
	return n.WriteToAddress(b, ml.Address{Addr: a})
}

func (n *network) DialTimeout(a string, timeout time.Duration) (net.Conn, error) {
	return n.DialAddressTimeout(ml.Address{Addr: a}, timeout)
}

func (n *network) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	return ipOf(n.name), port, nil
}

func (n *network) PacketCh() <-chan *ml.Packet { return n.packets }

func (n *network) StreamCh() <-chan net.Conn { return n.accepted }

// Shutdown implements ml.Transport. The transport.Transport stays open.
func (n *network) Shutdown() error {
	n.transport.Handle(n.group, nil)
	n.mu.Lock()
	n.closed = true
	var open []*stream
	for _, s := range n.streams {
		open = append(open, s)
	}
	n.mu.Unlock()
	for _, s := range open {
		s.abort()
	}
	for {
		select {
		case c := <-n.accepted:
			_ = c.Close()
			continue
		default:
		}
		break
	}
	n.running.Wait()
	return nil
}
