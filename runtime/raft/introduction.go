package raft

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
)

// introduction describes a node, in questions and in answers. The envelope holds the
// node's id and group.
type introduction struct {
	question   uint64   // number that the answer repeats; 0: this is not a question
	answerTo   uint64   // number of the question; 0: this is not an answer
	joins      bool     // the node does not found a group
	configured []Member // the configured first members, without ids

	// Only for members:
	knowsLeader  bool     // the node knows a leader
	index        uint64   // up to which the node knows the members
	members      []Member // members at index
	salt         []byte   // while the newest snapshot is the first one of the group: its salt
	firstMembers []Member // and its members
}

// introductionBytesMax limits an introduction: three lists of members with names and
// addresses.
const introductionBytesMax = 3 * 2 * membersMax * (2*nameBytesMax + 32)

// Fields of an introduction in protobuf's wire format.
const (
	fieldAsks = 1 + iota
	fieldAnswers
	fieldJoins
	fieldFirst
	fieldLed
	fieldIndex
	fieldMembers
	fieldFounded // head of the first snapshot of the group
)

func (i *introduction) append(b []byte) []byte {
	number := func(field protowire.Number, v uint64) {
		if v != 0 {
			b = protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
		}
	}
	text := func(field protowire.Number, v []byte) {
		if len(v) > 0 {
			b = protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), v)
		}
	}
	number(fieldAsks, i.question)
	number(fieldAnswers, i.answerTo)
	number(fieldJoins, protowire.EncodeBool(i.joins))
	text(fieldFirst, appendMembers(nil, i.configured))
	number(fieldLed, protowire.EncodeBool(i.knowsLeader))
	number(fieldIndex, i.index)
	text(fieldMembers, appendMembers(nil, i.members))
	if len(i.firstMembers) > 0 {
		text(fieldFounded, appendHead(nil, head{members: i.firstMembers, salt: i.salt}))
	}
	return b
}

var errIntroduction = errors.New("raft: an introduction is damaged")

func readIntroduction(b []byte) (i introduction, err error) {
	if len(b) > introductionBytesMax {
		return i, errIntroduction
	}
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return i, errIntroduction
		}
		b = b[n:]
		switch kind {
		case protowire.VarintType:
			v, n := protowire.ConsumeVarint(b)
			if n < 0 || !i.setNumber(field, v) {
				return i, errIntroduction
			}
			b = b[n:]
		case protowire.BytesType:
			v, n := protowire.ConsumeBytes(b)
			if n < 0 || !i.setBytes(field, v) {
				return i, errIntroduction
			}
			b = b[n:]
		default:
			return i, errIntroduction
		}
	}
	return i, nil
}

// setNumber sets a field, and reports whether the field exists.
func (i *introduction) setNumber(field protowire.Number, v uint64) bool {
	switch field {
	case fieldAsks:
		i.question = v
	case fieldAnswers:
		i.answerTo = v
	case fieldJoins:
		i.joins = protowire.DecodeBool(v)
	case fieldLed:
		i.knowsLeader = protowire.DecodeBool(v)
	case fieldIndex:
		i.index = v
	default:
		return false
	}
	return true
}

// setBytes sets a field, and reports whether the field exists and is valid.
func (i *introduction) setBytes(field protowire.Number, v []byte) bool {
	var err error
	switch field {
	case fieldFirst:
		i.configured, err = readMembers(v)
	case fieldMembers:
		i.members, err = readMembers(v)
	case fieldFounded:
		var h head
		var rest []byte
		h, rest, err = readSnapshot(v)
		i.firstMembers, i.salt = h.members, h.salt
		return err == nil && len(rest) == 0
	default:
		return false
	}
	return err == nil
}

// notice is a message to a node whose messages are ignored. It contains the reason.
type notice struct {
	reason notReason
	index  uint64 // of notMember: index up to which the sender knows the members
}

type notReason uint64

const (
	notMember notReason = 1 + iota // the receiver was removed from the group, or is not added yet
	notGroup                       // the receiver belongs to another group
)

// Fields of a notice.
const (
	fieldReason = 1 + iota
	fieldUpTo
)

func (n notice) append(b []byte) []byte {
	b = protowire.AppendVarint(protowire.AppendTag(b, fieldReason, protowire.VarintType), uint64(n.reason))
	return protowire.AppendVarint(protowire.AppendTag(b, fieldUpTo, protowire.VarintType), n.index)
}

var errNotice = errors.New("raft: a notice is damaged")

func readNotice(b []byte) (n notice, err error) {
	for len(b) > 0 {
		field, kind, size := protowire.ConsumeTag(b)
		if size < 0 || kind != protowire.VarintType {
			return n, errNotice
		}
		v, more := protowire.ConsumeVarint(b[size:])
		if more < 0 {
			return n, errNotice
		}
		b = b[size+more:]
		switch field {
		case fieldReason:
			n.reason = notReason(v)
		case fieldUpTo:
			n.index = v
		default:
			return n, errNotice
		}
	}
	if n.reason != notMember && n.reason != notGroup {
		return n, errNotice
	}
	return n, nil
}
