package broadcast

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/topogen/topogen/runtime/cluster/table"
)

// The kinds of messages between nodes. Each message has the term and the index to which it
// refers, and a body.
const (
	kindCollect = 1  // the sender wants to order the changes of a new term, and asks for the receiver's state
	kindState   = 2  // answer: the receiver's state
	kindInstall = 3  // the state at the beginning of a term, or for a node that lacks changes
	kindChange  = 4  // a change
	kindAck     = 5  // the receiver has logged and applied a change or a state
	kindNeed    = 6  // the receiver lacks changes
	kindRefuse  = 7  // the receiver knows the higher term in this message
	kindPropose = 8  // a command for the sequencer; the body begins with a number
	kindResult  = 9  // answer: number, status and outcome
	kindRead    = 10 // asks the sequencer for its revision
	kindAt      = 11 // the sequencer's revision, while no change is broadcast
)

const (
	messageVersion = 1
	messageHeader  = 18
	messageMax     = table.SnapshotBytes + messageHeader
)

// message is a message between nodes.
type message struct {
	kind        byte
	term, index uint64
	body        []byte
}

var errMessage = errors.New("table/broadcast: a message is damaged")

func (m *message) encode() []byte {
	b := make([]byte, 0, messageHeader+len(m.body))
	b = append(b, messageVersion, m.kind)
	b = binary.LittleEndian.AppendUint64(b, m.term)
	b = binary.LittleEndian.AppendUint64(b, m.index)
	return append(b, m.body...)
}

func readMessage(b []byte) (m message, err error) {
	if len(b) < messageHeader || len(b) > messageMax || b[0] != messageVersion || b[1] < kindCollect || b[1] > kindAt {
		return m, fmt.Errorf("%w: %d bytes", errMessage, len(b))
	}
	return message{b[1], binary.LittleEndian.Uint64(b[2:]), binary.LittleEndian.Uint64(b[10:]), b[messageHeader:]}, nil
}

// The status in a result.
const (
	statusDone  = 0 // the outcome follows
	statusRetry = 1 // the receiver is not the sequencer, or is not ready; nothing was changed
	statusLost  = 2 // the sequencer has lost its role: the command may be applied
)

// result is the answer to a command or a read.
type result struct {
	number   uint64
	status   byte
	revision table.Revision
	outcome  table.Outcome
}

func (r *result) message() message {
	b := append(binary.LittleEndian.AppendUint64(nil, r.number), r.status)
	return message{kindResult, r.revision.Term, r.revision.Index, table.AppendOutcome(b, &r.outcome)}
}

func readResult(m *message) (r result, err error) {
	if len(m.body) < 9 {
		return r, errMessage
	}
	r.number, r.status = binary.LittleEndian.Uint64(m.body), m.body[8]
	r.revision = table.Revision{Term: m.term, Index: m.index}
	r.outcome, err = table.ReadOutcome(m.body[9:])
	return r, err
}

// readNumber splits the body of a command or a read.
func readNumber(b []byte) (number uint64, rest []byte, err error) {
	if len(b) < 8 {
		return 0, nil, errMessage
	}
	return binary.LittleEndian.Uint64(b), b[8:], nil
}
