package raft

import (
	"encoding/binary"
	"errors"

	"github.com/topogen/topogen/runtime/cluster/table"
)

// A node that is not a member of the group asks the first nodes to admit it, and a member
// that hears of no leader asks whether it is still one. The leader answers. Both messages travel in a group of the transport of their own.
const (
	messageVersion = 1
	kindRequest    = 1
	kindAnswer     = 2
)

// textMax limits the text of an answer.
const textMax = 1024

// request asks to admit a node. Its name is the name that the transport has verified.
type request struct {
	number  uint64 // of the request; the answer repeats it
	id      uint64 // of the node's disk
	address string
	plan    string
	known   uint64 // 0: the node wants to join; otherwise it is a member after this committed entry, and hears of no leader
}

// answer is the answer of the leader.
type answer struct {
	number uint64
	code   answerCode
	text   string // why the node is refused, or must wait
}

type answerCode uint8

const (
	answerAdmitted answerCode = iota // the node is a member, or will soon be one
	answerWait                       // the node must ask again
	answerPlan                       // the node has another plan
	answerRefused                    // the node cannot become a member
	answerRemoved                    // the group has removed the node
	answerLeft                       // the group has removed the node, which had left
)

var errMessage = errors.New("table/raft: a message is damaged")

func appendRequest(b []byte, r request) []byte {
	b = append(b, messageVersion, kindRequest)
	b = binary.AppendUvarint(binary.AppendUvarint(b, r.number), r.id)
	return binary.AppendUvarint(appendText(appendText(b, r.address), r.plan), r.known)
}

func appendAnswer(b []byte, a answer) []byte {
	b = append(b, messageVersion, kindAnswer)
	b = append(binary.AppendUvarint(b, a.number), byte(a.code))
	return appendText(b, a.text[:min(len(a.text), textMax)])
}

// readMessage decodes a message of another node: a request or an answer.
func readMessage(b []byte) (r *request, a *answer, err error) {
	if len(b) < 2 || b[0] != messageVersion {
		return nil, nil, errMessage
	}
	in := reader{b: b[2:]}
	switch b[1] {
	case kindRequest:
		r = &request{number: in.uint(), id: in.uint(), address: in.text(table.NameBytesMax), plan: in.text(table.PlanBytesMax), known: in.uint()}
	case kindAnswer:
		a = &answer{number: in.uint(), code: answerCode(in.byte()), text: in.text(textMax)}
	default:
		return nil, nil, errMessage
	}
	if in.failed || len(in.b) > 0 {
		return nil, nil, errMessage
	}
	return r, a, nil
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// reader reads fields. After a failure it returns zero values.
type reader struct {
	b      []byte
	failed bool
}

func (r *reader) take(n uint64) []byte {
	if r.failed || n > uint64(len(r.b)) {
		r.failed = true
		return nil
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.failed = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) text(limit uint64) string {
	n := r.uint()
	if n > limit {
		r.failed = true
	}
	return string(r.take(n))
}
