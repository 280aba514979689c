package raft

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"

	"github.com/topogen/topogen/runtime/raft/wal"
)

// Record identifies the node that a disk belongs to. It is durable before any other node
// receives the id.
type Record struct {
	Topology string
	Group    string
	Name     string // of the node, when the record was written
	ID       uint64 // of the node; no other disk has it
	GroupID  uint64 // identity of the node's group; 0: the node is not a member of a group yet
	Since    uint64 // an index at which the group's members included the node
}

// identity returns the identity of the node's log.
func (r *Record) identity() wal.Identity {
	return wal.Identity{Topology: r.Topology, Group: r.Group, Node: r.ID, Name: r.Name, GroupID: r.GroupID}
}

const (
	recordTitle    = "topogen member 1" // with the version of the format
	recordBytesMax = 16 << 10           // three quoted names of at most 1 KiB, and some numbers
)

var errRecord = errors.New("its contents are not a record that a node writes")

// appendRecord appends a record as readable lines. The last line is a checksum.
func appendRecord(b []byte, r Record) []byte {
	start := len(b)
	b = fmt.Appendf(b, "%s\ntopology %q\ngroup %q\nnode %q\nid %016x\ngroup-id %016x\nsince %d\n",
		recordTitle, r.Topology, r.Group, r.Name, r.ID, r.GroupID, r.Since)
	return fmt.Appendf(b, "checksum %08x\n", crc32.ChecksumIEEE(b[start:]))
}

// readRecord reads the output of appendRecord, and accepts nothing else.
func readRecord(b []byte) (r Record, err error) {
	lines := strings.Split(string(b), "\n")
	if len(b) > recordBytesMax || len(lines) != 9 {
		return r, errRecord
	}
	value := func(line int, key string) string {
		v, _ := strings.CutPrefix(lines[line], key+" ")
		return v
	}
	text := func(line int, key string) string {
		v, e := strconv.Unquote(value(line, key))
		err = errors.Join(err, e)
		return v
	}
	number := func(line int, key string, base int) uint64 {
		v, e := strconv.ParseUint(value(line, key), base, 64)
		err = errors.Join(err, e)
		return v
	}
	r = Record{
		Topology: text(1, "topology"), Group: text(2, "group"), Name: text(3, "node"),
		ID: number(4, "id", 16), GroupID: number(5, "group-id", 16), Since: number(6, "since", 10),
	}
	if err != nil || r.ID == 0 || r.ID > idMask || !bytes.Equal(appendRecord(nil, r), b) {
		return Record{}, errRecord
	}
	return r, nil
}
