package cluster

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/topogen/topogen/runtime/internal/fields"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/piper/border"
	"github.com/topogen/topogen/runtime/topo"
)

// Lanes of control messages.
const (
	laneControl = 0 // small messages about the topology
	laneConfirm = 1 // confirmations
)

// laneAnswers is a part of the number of a lane for the replies to the messages of another
// lane, and for confirmations that come after them. Replies may be large, so they are no
// control messages.
const laneAnswers = 1 << 62

// Kinds of control messages.
const (
	controlConfirm  = 1  // pairs of lane and number of handled messages
	controlReply    = 2  // lane, call, and 0 and the reply, 1 and the text of an error, or 2 for topo.ErrFull
	controlStatus   = 3  // group, phase, turns: the group is quiet on this node
	controlQuery    = 4  // group, phase, round: is it still quiet?
	controlAnswer   = 5  // group, phase, round, quiet, turns
	controlFinished = 6  // the node has read in the address table that all groups have finished
	controlFailed   = 7  // the node that has failed and the text of its error, which ends the topology
	controlDraining = 8  // groups: the node drains its queues and stops, and takes no more messages for these groups
	controlLeft     = 9  // the node has drained its queues and stops, while others go on
	controlReturned = 10 // lane: the instance of the pair is not on this node
	controlAgain    = 11 // lane and number of messages that were taken: the others must be sent again
	controlFull     = 12 // groups: they are cycles, and a queue within each of them is full on the node
)

// control handles a control message.
func (p *nodePeer) control(m []byte) error {
	kind, r := m[0], newReader(m[1:])
	switch kind {
	case controlConfirm:
		return p.confirmed(r)
	case controlStatus, controlQuery, controlAnswer, controlFailed, controlFull:
		return p.core.role.control(p, m)
	case controlDraining:
		return p.drains(r)
	case controlFinished:
		p.finished = true
		return r.End()
	case controlLeft:
		p.left = true
		p.releasePlaces()
		return r.End()
	}
	return fmt.Errorf("%w: control message %d", errMalformed, kind)
}

// answered handles a message in the lane of replies.
func (p *nodePeer) answered(m []byte) error {
	kind, r := m[0], newReader(m[1:])
	switch kind {
	case controlConfirm:
		return p.confirmed(r)
	case controlReply:
		return p.replied(r)
	case controlReturned:
		return p.cameBack(r)
	case controlAgain:
		return p.mustSendAgain(r)
	}
	return fmt.Errorf("%w: message %d in a lane of replies", errMalformed, kind)
}

// confirmed handles confirmations.
func (p *nodePeer) confirmed(r *fields.Reader) error {
	for len(r.B) > 0 {
		lane, n := r.Uint(), r.Uint()
		if r.Err != nil {
			return r.Err
		}
		if lane < firstLane || lane-firstLane >= uint64(len(p.out)) {
			return fmt.Errorf("%w: confirmation of the unknown pair %d", errMalformed, lane)
		}
		if err := p.out[lane-firstLane].confirm(n); err != nil {
			return err
		}
	}
	return nil
}

// mustSendAgain handles the request of askAgain.
func (p *nodePeer) mustSendAgain(r *fields.Reader) error {
	lane, taken := r.Uint(), r.Uint()
	if err := r.End(); err != nil || lane < firstLane || lane-firstLane >= uint64(len(p.out)) {
		return fmt.Errorf("%w: the other node has ignored messages of the unknown pair %d", errMalformed, lane)
	}
	return p.out[lane-firstLane].sendAgain(taken)
}

// errorBytesMax bounds the text of an error that a caller on another node gets. Handlers may
// return longer texts than a session takes.
const errorBytesMax = 64 << 10

// appendReply appends a reply.
func appendReply(b []byte, lane, call uint64, reply []byte, failure error) []byte {
	b = append(b, controlReply)
	b = binary.AppendUvarint(b, lane)
	b = binary.AppendUvarint(b, call)
	if errors.Is(failure, topo.ErrFull) {
		return append(b, 2)
	}
	if failure != nil {
		text := fmt.Sprint(failure) // its method Error may panic
		return append(append(b, 1), text[:min(len(text), errorBytesMax)]...)
	}
	return append(append(b, 0), reply...)
}

// readReply reads a reply, and the lane of its pair.
func readReply(r *fields.Reader) (lane uint64, m reply) {
	lane, m.call.Number = r.Uint(), r.Uint()
	switch kind := r.Uint(); kind {
	case 0:
		m.data = r.B
	case 1:
		m.err = errors.New(string(r.B))
	case 2:
		m.err = topo.ErrFull
	default:
		r.Fail("a reply of kind %d", kind)
	}
	return lane, m
}

func (p *nodePeer) replied(r *fields.Reader) error {
	lane, m := readReply(r)
	if r.Err != nil || lane < firstLane || lane-firstLane >= uint64(len(p.out)) {
		return fmt.Errorf("%w: reply", errMalformed)
	}
	p.out[lane-firstLane].outlet.Reply(p.name, m.call.Number, m.data, m.err)
	return nil
}

// reply is a reply to a call. in is the pair of the request on the node that replies.
type reply struct {
	in   *inPair
	call border.Call // the process that reads a reply has no use for Process
	data []byte
	err  error
}

// groupMessage is a message about the end of a group.
type groupMessage struct {
	kind  byte
	group int
	phase uint8
	round uint64 // of controlQuery and controlAnswer
	quiet bool   // of controlAnswer; true for controlStatus
	turns uint32 // of controlStatus and controlAnswer
}

func (m *groupMessage) append(b []byte) []byte {
	b = append(b, m.kind)
	b = binary.AppendUvarint(b, uint64(m.group))
	b = append(b, m.phase)
	b = binary.AppendUvarint(b, m.round)
	quiet := byte(0)
	if m.quiet {
		quiet = 1
	}
	return binary.AppendUvarint(append(b, quiet), uint64(m.turns))
}

func (m *groupMessage) read(kind byte, r *fields.Reader) error {
	m.kind, m.group = kind, r.Number(indexMax)
	phase := r.Uint()
	m.round = r.Uint()
	quiet, turns := r.Uint(), r.Uint()
	if phase > uint64(piper.GroupFinished) || quiet > 1 || turns > math.MaxUint32 {
		r.Fail("phase %d, quiet %d, %d turns", phase, quiet, turns)
	}
	m.phase, m.quiet, m.turns = uint8(phase), quiet == 1, uint32(turns)
	return r.End()
}
