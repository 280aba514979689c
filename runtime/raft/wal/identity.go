package wal

import (
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// nameMax is the maximal length of each name in an identity, in bytes. Each segment
// begins with the identity.
const nameMax = 1 << 10

func (id Identity) check() error {
	if len(id.Topology) > nameMax || len(id.Group) > nameMax || len(id.Name) > nameMax {
		return fmt.Errorf("wal: each name of an identity must have at most %d bytes", nameMax)
	}
	return nil
}

// same reports whether a log with identity id may be opened with the identity other. It
// ignores the names of nodes. It compares the GroupID only if both have one: old logs
// do not contain it, and not every caller knows it.
func (id Identity) same(other Identity) bool {
	id.Name = other.Name
	if id.GroupID == 0 || other.GroupID == 0 {
		id.GroupID = other.GroupID
	}
	return id == other
}

// node returns the name of the node, or its id in hexadecimal if the name is unknown. It
// quotes names that are not one printable word.
func (id Identity) node() string {
	if id.Name == "" {
		return fmt.Sprintf("node %x", id.Node)
	}
	if quoted := strconv.Quote(id.Name); quoted != `"`+id.Name+`"` || strings.Contains(id.Name, " ") {
		return quoted
	}
	return id.Name
}

// appendIdentity appends the message {string topology = 1; string group = 2; uint64
// node = 3; string name = 4; uint64 group_id = 5}. It omits the last two if they are not
// set.
func appendIdentity(b []byte, id Identity) []byte {
	b = protowire.AppendString(protowire.AppendTag(b, 1, protowire.BytesType), id.Topology)
	b = protowire.AppendString(protowire.AppendTag(b, 2, protowire.BytesType), id.Group)
	b = protowire.AppendVarint(protowire.AppendTag(b, 3, protowire.VarintType), id.Node)
	if id.Name != "" {
		b = protowire.AppendString(protowire.AppendTag(b, 4, protowire.BytesType), id.Name)
	}
	if id.GroupID != 0 {
		b = protowire.AppendVarint(protowire.AppendTag(b, 5, protowire.VarintType), id.GroupID)
	}
	return b
}

func parseIdentity(b []byte) (id Identity, ok bool) {
	for i, text := range []*string{&id.Topology, &id.Group} {
		if *text, b, ok = parseText(b, protowire.Number(i+1)); !ok {
			return id, false
		}
	}
	if id.Node, b, ok = parseNumber(b, 3); !ok {
		return id, false
	}
	if len(b) > 0 && b[0]>>3 == 4 {
		if id.Name, b, ok = parseText(b, 4); !ok || id.Name == "" {
			return id, false
		}
	}
	if len(b) > 0 {
		if id.GroupID, b, ok = parseNumber(b, 5); !ok || id.GroupID == 0 {
			return id, false
		}
	}
	return id, len(b) == 0
}

// parseNumber parses a varint field with the field number want, and returns the bytes
// after it.
func parseNumber(b []byte, want protowire.Number) (v uint64, rest []byte, ok bool) {
	number, kind, n := protowire.ConsumeTag(b)
	if n < 0 || number != want || kind != protowire.VarintType {
		return 0, nil, false
	}
	v, m := protowire.ConsumeVarint(b[n:])
	if m < 0 {
		return 0, nil, false
	}
	return v, b[n+m:], true
}

// parseText parses a string field with the field number want, and returns the bytes after
// it.
func parseText(b []byte, want protowire.Number) (text string, rest []byte, ok bool) {
	number, kind, n := protowire.ConsumeTag(b)
	if n < 0 || number != want || kind != protowire.BytesType {
		return "", nil, false
	}
	v, m := protowire.ConsumeBytes(b[n:])
	if m < 0 {
		return "", nil, false
	}
	return string(v), b[n+m:], true
}
