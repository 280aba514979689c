package cluster

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/runtime/cluster/session"
	"github.com/topogen/topogen/runtime/internal/fields"
	"github.com/topogen/topogen/runtime/piper/border"
)

// outPair is the sending end of a pair: an instance of this node that sends to an
// instance of another one. It keeps the messages until the other node has handled them.
type outPair struct {
	border.Pair
	to     settler
	outlet *border.Outlet // gets the replies
	peer   *nodePeer
	lane   uint64

	kept    []kept // oldest first
	handed  int    // number of elements of kept that this session has sent, or that are lost
	given   int    // elements among them that it has sent
	settled uint64 // messages of this session that the other node has handled
	opened  bool   // the session knows the pair
	again   bool   // before the next chunk, the other node must learn that it gets chunks again, see excess.go
	waiting bool   // in peer.waiting
	away    bool   // the node has returned the pair, which is in core.returned
	lostWhy error  // why chunks were lost
	shared  int    // number of chunks for all nodes among given

	lookAt time.Duration // if away: when the instance is looked up again
	delay  time.Duration // before the next lookup
	homes  []*outPair    // if the instance was on several nodes: the pairs with all of them
}

// settler counts messages that need not be kept any longer: a *border.Outlet or a
// *castEnd.
type settler interface {
	Settle(n int, dropped error)
}

// kept is a chunk that the other node has not handled completely. It is small, because a chunk may
// have only one message.
type kept struct {
	data       []byte     // nil if it is lost, or for all nodes
	cast       *castChunk // has the data of a chunk for all nodes
	since      time.Duration
	messages   int32
	done       int32 // messages at its beginning that were handled
	atMostOnce bool
	dropped    bool // counted as dropped, although it was sent
	lost       bool // no process has it, although it was sent at most once; outPair.lostWhy
}

// left is the number of messages that were not handled.
func (k *kept) left() int { return int(k.messages - k.done) }

// inPair is the receiving end of a pair.
type inPair struct {
	arrivals *border.Arrivals
	peer     *peer
	lane     uint64
	limit    uint64 // of messages that were put and not handled
	put      uint64 // messages that were passed to the pool, in all sessions
	process  uint64 // counts the processes that have opened the pair
	base     uint64 // value of put at the beginning of the session
	told     uint64 // the last confirmation of this session
	hurry    uint64 // so many handled messages are confirmed without a delay
	listed   bool   // in peer.unconfirmed
	excess   excess // whether chunks were ignored
	replies  bool   // replies were sent, so confirmations are sent after them in the same lane
	done     uint64 // handled messages when the mailbox was emptied

	handled atomic.Uint64 // as the pool has reported it
	dirty   atomic.Bool   // in the mailbox
}

// kinds of messages in the lane of a pair
const (
	pairOpen  = 1
	pairChunk = 2
	pairAgain = 3 // the receiving node has ignored the chunks that come after it
)

// A session takes the largest chunk and the largest reply: the largest message, smaller ones
// before it, and a header.
const _ = uint(session.MessageBytesMax - border.CrossingBytesMax - 20<<10)

// A session reads chunks after [outPair.Took] only if they are larger than any chunk whose buffer is used again.
const _ = uint(session.FragmentBytes - border.ReusedBytes)

var (
	errMalformed    = errors.New("cluster: malformed message")
	errProcessEnded = errors.New("the process that received it has ended")
)

// appendOpen appends the message that begins a pair.
func appendOpen(b []byte, p border.Pair) []byte {
	b = append(b, pairOpen)
	for _, v := range [...]int{p.From, p.FromInstance, p.To, p.ToInstance + 1} { // OnAllOthers is -1
		b = binary.AppendUvarint(b, uint64(v))
	}
	return b
}

// indexMax bounds the indices and numbers in messages, so that they fit an int anywhere.
const indexMax = 1<<31 - 1

func readOpen(b []byte) (p border.Pair, err error) {
	r := newReader(b)
	p.From, p.FromInstance, p.To, p.ToInstance = r.Number(indexMax), r.Number(indexMax), r.Number(indexMax), r.Number(indexMax)-1
	return p, r.End()
}

// appendChunk appends the header of a chunk of which the first skip messages must be left out.
func appendChunk(b []byte, messages, skip int) []byte {
	b = binary.AppendUvarint(append(b, pairChunk), uint64(messages))
	return binary.AppendUvarint(b, uint64(skip))
}

func readChunk(b []byte) (messages, skip int, data []byte, err error) {
	r := newReader(b)
	messages, skip = r.Number(indexMax), r.Number(indexMax)
	if r.Err == nil && (skip >= messages || messages > len(r.B)) { // a message has at least one byte, and some message of a chunk counts
		r.Fail("%d messages of %d in %d bytes", skip, messages, len(r.B))
	}
	return messages, skip, r.B, r.Err
}

func newReader(b []byte) *fields.Reader { return &fields.Reader{B: b, Damaged: errMalformed} }

// forward keeps a chunk and sends it if the other node can be reached.
func (p *outPair) forward(now time.Duration, c border.Chunk) {
	p.keep(now, kept{data: c.Data, messages: int32(c.Messages), atMostOnce: c.AtMostOnce})
}

func (p *outPair) keep(now time.Duration, k kept) {
	p.peer.kept += uint64(k.messages)
	p.peer.changed = true
	k.since = now
	p.kept = append(p.kept, k)
	if (p.peer.waitedFor || p.peer.forgotten) && !p.peer.accepts(p.To) {
		p.expire(now, p.peer.unreachable())
		return
	}
	p.pump()
}

// pump lets the session ask for what it does not have yet.
func (p *outPair) pump() {
	p.passLost()
	switch {
	case p.away || p.handed == len(p.kept):
	case !p.peer.accepts(p.To):
		p.wait()
	default:
		p.peer.changed = true
		p.peer.session.Ready(p.lane, p)
	}
}

// Next implements session.Source.
func (p *outPair) Next(b []byte) (head, body []byte) {
	switch {
	case p.away || p.handed == len(p.kept):
		return nil, nil
	case !p.peer.accepts(p.To):
		p.wait()
		return nil, nil
	case !p.opened:
		return appendOpen(b, p.Pair), nil
	case p.again:
		return append(b, pairAgain), nil
	}
	k := &p.kept[p.handed]
	body = k.data
	if k.cast != nil {
		if !p.to.(*castEnd).mayShare() {
			return nil, nil
		}
		body = k.cast.Data
	}
	return appendChunk(b, int(k.messages), int(k.done)), body
}

// Took implements session.Source.
func (p *outPair) Took() {
	if !p.opened || p.again {
		p.opened, p.again = true, false
		return
	}
	if p.kept[p.handed].cast != nil {
		p.shared++
	}
	p.given++
	p.handed++
	p.passLost()
}

// passLost passes over chunks that no process has any more.
func (p *outPair) passLost() {
	for p.handed < len(p.kept) && p.kept[p.handed].lost {
		p.handed++
	}
	p.settleLost()
}

// wait adds the pair to the list of pairs that go on when the node can be reached again.
func (p *outPair) wait() {
	if !p.waiting {
		p.waiting = true
		p.peer.waiting = append(p.peer.waiting, p)
	}
	p.release() // the session has perhaps asked for a message for all nodes, and taken none
}

// confirm counts messages as handled: n of this session.
func (p *outPair) confirm(n uint64) error {
	if n <= p.settled {
		return nil // the lane of replies has overtaken that of confirmations
	}
	left := n - p.settled
	p.delay = 0
	p.settled = n
	for p.settleLost(); left > 0; p.settleLost() {
		if p.given == 0 {
			p.settled -= left
			return fmt.Errorf("%w: %d messages of a pair are confirmed that were not sent", errMalformed, left)
		}
		k := &p.kept[0]
		handled, counts := int(min(left, uint64(k.left()))), !k.dropped
		left -= uint64(handled)
		if k.done += int32(handled); k.done == k.messages {
			p.drop()
		}
		if counts {
			p.settle(handled, nil)
		}
	}
	p.release()
	return nil
}

// release gives the place of the pair in its cast to another one, when no messages for all nodes
// are on their way.
func (p *outPair) release() {
	if e, ok := p.to.(*castEnd); ok && p.shared == 0 {
		e.release()
	}
}

// settleLost counts messages that no process has any more, when they are the oldest.
func (p *outPair) settleLost() {
	for p.handed > 0 && p.kept[0].lost {
		k := p.kept[0]
		if p.drop(); !k.dropped {
			p.settle(k.left(), p.lostWhy)
		}
	}
}

// settle says what became of the oldest messages of the pair. It may pass further messages
// on to the pair, so it is called after all other changes.
func (p *outPair) settle(n int, dropped error) {
	p.peer.kept -= uint64(n)
	if dropped != nil {
		p.peer.dropped += uint64(n)
	}
	p.to.Settle(n, dropped)
}

// drop removes the oldest chunk.
func (p *outPair) drop() {
	if p.kept[0].dropped {
		defer p.peer.core.role.doubt(p.To, -1)
	}
	if !p.kept[0].lost {
		p.unsent(&p.kept[0])
	}
	border.ReuseChunk(p.kept[0].data)
	p.kept[0] = kept{}
	p.handed--
	if p.kept = p.kept[1:]; len(p.kept) == 0 {
		p.kept = nil
	}
}

// unsent counts a chunk that is on its way no longer.
func (p *outPair) unsent(k *kept) {
	p.given--
	if k.cast != nil {
		p.shared--
	}
}

// restart begins again for a new process of the other node, which has received nothing.
func (p *outPair) restart() {
	p.away = false
	p.takeBack(errProcessEnded)
	if len(p.kept) > 0 {
		p.pump()
	}
}

// takeBack prepares all messages to be sent again, because the process of the other node
// does not have them. why is what becomes of messages that are sent at most once.
func (p *outPair) takeBack(why error) {
	p.opened, p.again, p.settled = false, false, 0
	p.unsend(0, why)
}

// expire drops the messages that were sent before a time.
func (p *outPair) expire(before time.Duration, why error) {
	n := 0
	for i := range p.kept {
		k := &p.kept[i]
		if k.since > before {
			break
		}
		if k.dropped {
			continue
		}
		if k.dropped = true; i < p.handed {
			p.peer.core.role.doubt(p.To, 1)
		}
		n += k.left()
	}
	if n == 0 {
		return
	}
	rest := p.kept[:p.handed]
	for _, k := range p.kept[p.handed:] { // they were not sent
		if !k.dropped {
			rest = append(rest, k)
		}
	}
	clear(p.kept[len(rest):])
	p.kept = rest
	p.release()
	p.settle(n, why)
	p.passLost()
}

// unsettled is the number of messages that are neither handled nor dropped.
func (p *outPair) unsettled() (n int) {
	for i := range p.kept {
		if k := &p.kept[i]; !k.dropped {
			n += k.left()
		}
	}
	return n
}

// loseSent drops what was sent: the other node may have handled it.
func (p *outPair) loseSent(why error) {
	for i := range p.kept[:p.handed] {
		p.kept[i].atMostOnce = true
	}
	p.takeBack(why)
}
