package raft

import (
	"encoding/binary"
	"errors"

	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/internal/fields"
)

// A node that is not a member of the group asks the first nodes to admit it, and a member
// that hears of no leader asks whether it is still one. The leader answers. A holder of a lease asks the leader to renew
// it, and finds the answer in its replica. These messages travel in a group of the transport of their own.
const (
	messageVersion = 1
	kindRequest    = 1
	kindAnswer     = 2
	kindRenewal    = 3
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
	text   string     // why the node is refused, or must wait
	plan   table.Plan // of the cluster, with answerPlan
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
	return binary.AppendUvarint(fields.AppendText(fields.AppendText(b, r.address), r.plan), r.known)
}

func appendAnswer(b []byte, a answer) []byte {
	b = append(b, messageVersion, kindAnswer)
	b = append(binary.AppendUvarint(b, a.number), byte(a.code))
	if a.code == answerPlan {
		return fields.AppendText(fields.AppendText(b, a.plan.Hash), a.plan.Description)
	}
	return fields.AppendText(b, a.text[:min(len(a.text), textMax)])
}

func appendRenewals(b []byte, w ...table.Renewal) []byte {
	c, _ := table.AppendCommand(nil, &table.Command{Kind: table.CommandRenew, Renewals: w}) // within the limits
	return append(append(b, messageVersion, kindRenewal), c...)
}

// readMessage decodes a message of another node: a request, an answer, or a []table.Renewal.
func readMessage(b []byte) (m any, err error) {
	if len(b) < 2 || b[0] != messageVersion {
		return nil, errMessage
	}
	in := fields.Reader{B: b[2:]}
	switch b[1] {
	case kindRequest:
		m = request{number: in.Uint(), id: in.Uint(), address: in.Text(table.NameBytesMax), plan: in.Text(table.PlanBytesMax), known: in.Uint()}
	case kindAnswer:
		a := answer{number: in.Uint(), code: answerCode(in.Byte())}
		if a.code == answerPlan {
			a.plan = table.Plan{Hash: in.Text(table.PlanBytesMax), Description: in.Text(table.DescriptionBytesMax)}
		} else {
			a.text = in.Text(textMax)
		}
		m = a
	case kindRenewal:
		c, err := table.ReadCommand(in.B)
		if err != nil || c.Kind != table.CommandRenew {
			return nil, errMessage
		}
		return c.Renewals, nil
	default:
		return nil, errMessage
	}
	if in.End() != nil {
		return nil, errMessage
	}
	return m, nil
}
