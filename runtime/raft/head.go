package raft

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
)

var errSnapshot = errors.New("raft: a snapshot is damaged")

// head is the first part of the data of a snapshot, before the bytes of the state
// machine. Its length is written before it.
type head struct {
	members []Member
	groupID uint64 // 0: the snapshot is older than the identities of groups
	salt    []byte // of the first snapshot of a group: random bytes from its founder
}

// Fields of a head in protobuf's wire format, after the fields of the members.
const (
	fieldGroupID = 2
	fieldSalt    = 3
)

func appendHead(b []byte, h head) []byte {
	list := appendMembers(nil, h.members)
	if h.groupID != 0 {
		list = protowire.AppendTag(list, fieldGroupID, protowire.Fixed64Type)
		list = protowire.AppendFixed64(list, h.groupID)
	}
	if len(h.salt) > 0 {
		list = protowire.AppendTag(list, fieldSalt, protowire.BytesType)
		list = protowire.AppendBytes(list, h.salt)
	}
	return protowire.AppendBytes(b, list)
}

// readSnapshot splits the data of a snapshot.
func readSnapshot(b []byte) (h head, machine []byte, err error) {
	text, n := protowire.ConsumeBytes(b)
	if n < 0 {
		return h, nil, errSnapshot
	}
	h, err = readHead(text)
	return h, b[n:], err
}

func readHead(b []byte) (h head, err error) {
	end := 0 // of the members
	for end < len(b) {
		number, _, n := protowire.ConsumeField(b[end:])
		if n < 0 {
			return h, errSnapshot
		}
		if number != fieldMember {
			break
		}
		end += n
	}
	if h.members, err = readMembers(b[:end]); err != nil {
		return h, err
	}
	for b = b[end:]; len(b) > 0; {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return h, errSnapshot
		}
		b = b[n:]
		switch {
		case number == fieldGroupID && kind == protowire.Fixed64Type:
			h.groupID, n = protowire.ConsumeFixed64(b)
		case number == fieldSalt && kind == protowire.BytesType:
			h.salt, n = protowire.ConsumeBytes(b)
			if len(h.salt) != saltBytes {
				return h, errSnapshot
			}
		default:
			return h, errSnapshot
		}
		if n < 0 {
			return h, errSnapshot
		}
		b = b[n:]
	}
	return h, nil
}
