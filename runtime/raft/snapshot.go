package raft

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
)

var errSnapshot = errors.New("raft: a snapshot is damaged")

// appendSnapshotHead writes what stands before the state machine's bytes in the
// data of a snapshot: who the members are, behind the length of that.
func appendSnapshotHead(b []byte, list []Member) []byte {
	return protowire.AppendBytes(b, appendMembers(nil, list))
}

// readSnapshot finds the parts of a snapshot's data.
func readSnapshot(b []byte) (list []Member, machine []byte, err error) {
	head, n := protowire.ConsumeBytes(b)
	if n < 0 {
		return nil, nil, errSnapshot
	}
	list, err = readMembers(head)
	return list, b[n:], err
}
