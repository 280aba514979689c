package memberlist

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	ml "github.com/hashicorp/memberlist"

	"github.com/topogen/topogen/runtime/transport"
)

const (
	streamsMax    = 64       // streams of a node at a time: the library uses one each 30 intervals, and some for failed probes
	peerMax       = 8        // streams at a time that one peer has opened
	streamMax     = 4 << 20  // bytes of a stream in one direction: the claims of 10,000 members
	segmentMax    = 32 << 10 // bytes of a segment
	segmentsMax   = streamMax/segmentMax + streamMax/1024
	segmentHeader = 1 + 8 + 4 // flags, number of the stream, sequence of the segment
)

const (
	flagOpened = 1 << iota // the sender of the segment has opened the stream
	flagEnd                // the sender sends no more
	flagReset              // the stream has failed
)

// streamID identifies a stream between this node and a peer.
type streamID struct {
	peer   string
	opened bool // by this node
	number uint64
}

// stream connects one end of a pipe, whose other end the library has, with the transport.
type stream struct {
	network *network
	id      streamID
	pipe    net.Conn

	mu       sync.Mutex
	more     *sync.Cond
	waiting  [][]byte // segments for the library
	received int      // bytes
	next     uint32   // sequence of the next segment
	ended    bool
}

// conn is the end of a pipe that the library has.
type conn struct {
	net.Conn
	local, remote addr
}

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }

func (n *network) DialAddressTimeout(a ml.Address, _ time.Duration) (net.Conn, error) {
	name, err := n.nameOf(a)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	n.last++
	id := streamID{peer: name, opened: true, number: n.last}
	n.mu.Unlock()
	c := n.open(id)
	if c == nil {
		return nil, errors.New("memberlist: too many streams")
	}
	return c, nil
}

// open starts a stream and returns the end for the library, or nil if there are too many
// streams.
func (n *network) open(id streamID) net.Conn {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed || len(n.streams) >= streamsMax || n.streams[id] != nil {
		return nil
	}
	if !id.opened {
		of := 0
		for other := range n.streams {
			if other.peer == id.peer && !other.opened {
				of++
			}
		}
		if of >= peerMax {
			return nil
		}
	}
	near, far := net.Pipe()
	s := &stream{network: n, id: id, pipe: far}
	s.more = sync.NewCond(&s.mu)
	n.streams[id] = s
	n.running.Add(1)
	go s.run()
	return &conn{Conn: near, local: addr{n.name}, remote: addr{id.peer}}
}

// run copies both directions until both have ended.
func (s *stream) run() {
	defer s.network.running.Done()
	var both sync.WaitGroup
	both.Go(s.send)
	both.Go(s.deliver)
	both.Wait()
	s.network.mu.Lock()
	delete(s.network.streams, s.id)
	s.network.mu.Unlock()
}

// send sends segments until the library closes its end.
func (s *stream) send() {
	buffer := make([]byte, segmentMax)
	for sequence := uint32(0); ; sequence++ {
		n, err := s.pipe.Read(buffer)
		if n > 0 {
			s.write(0, sequence, buffer[:n])
			continue
		}
		if err == nil {
			sequence--
			continue
		}
		flags := byte(flagEnd)
		if !errors.Is(err, io.EOF) {
			flags = flagReset
		}
		s.write(flags, sequence, nil)
		s.end() // the library does not read from a closed stream
		return
	}
}

func (s *stream) write(flags byte, sequence uint32, data []byte) {
	if s.id.opened {
		flags |= flagOpened
	}
	b := make([]byte, 0, 1+segmentHeader+len(data))
	b = append(b, payloadStream, flags)
	b = binary.BigEndian.AppendUint64(b, s.id.number)
	b = binary.BigEndian.AppendUint32(b, sequence)
	b = append(b, data...)
	s.network.transport.Send(s.id.peer, transport.Message{Group: s.network.group, Payload: b})
}

// deliver passes the message of the stream to the library when it has come completely: what it
// announces is then in memory already.
func (s *stream) deliver() {
	in := &input{left: streamMax, more: s.segment}
	err := checkStream(in)
	for _, data := range in.held {
		if err == nil {
			_, err = s.pipe.Write(data)
		}
	}
	if err == nil && (len(in.rest) > 0 || s.segment() != nil) {
		err = errForm // a stream has one message in each direction
	}
	s.network.refused(s.id.peer, err)
	s.abort()
}

// segment waits for the next segment. It returns nil after the last one.
func (s *stream) segment() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.waiting) == 0 && !s.ended {
		s.more.Wait()
	}
	if len(s.waiting) == 0 {
		return nil
	}
	data := s.waiting[0]
	s.waiting = s.waiting[1:]
	return data
}

// end ends the receiving direction after the segments that wait.
func (s *stream) end() {
	s.mu.Lock()
	s.ended = true
	s.more.Signal()
	s.mu.Unlock()
}

// abort ends both directions at once.
func (s *stream) abort() {
	_ = s.pipe.Close()
	s.end()
}

// receiveSegment handles a segment of a peer. A gap in the sequence or too many bytes end
// the stream.
func (n *network) receiveSegment(from string, b []byte) {
	if len(b) < segmentHeader || len(b) > segmentHeader+segmentMax {
		return
	}
	flags, number, sequence, data := b[0], binary.BigEndian.Uint64(b[1:]), binary.BigEndian.Uint32(b[9:]), b[segmentHeader:]
	id := streamID{peer: from, opened: flags&flagOpened == 0, number: number}
	n.mu.Lock()
	s := n.streams[id]
	n.mu.Unlock()
	if s == nil {
		if id.opened || sequence > 0 || flags&(flagEnd|flagReset) != 0 {
			return // a stream that has ended here
		}
		c := n.open(id)
		if c == nil {
			return
		}
		n.mu.Lock()
		s = n.streams[id]
		n.mu.Unlock()
		select {
		case n.accepted <- c:
		default:
			_ = c.Close()
		}
		if s == nil {
			return
		}
	}
	if flags&flagReset != 0 || !s.add(sequence, data) {
		s.abort()
		return
	}
	if flags&flagEnd != 0 {
		s.end()
	}
}

// add queues a segment for the library. It returns false if the stream has failed.
func (s *stream) add(sequence uint32, data []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.received += len(data)
	if sequence != s.next || s.received > streamMax || s.next >= segmentsMax {
		return false
	}
	s.next++
	if len(data) > 0 && !s.ended {
		s.waiting = append(s.waiting, data)
		s.more.Signal()
	}
	return true
}
