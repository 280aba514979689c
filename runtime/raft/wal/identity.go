package wal

import (
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// nameMax bounds the names of an identity, which stand at the head of each segment.
const nameMax = 1 << 10

func (id Identity) check() error {
	if len(id.Topology) > nameMax || len(id.Group) > nameMax || len(id.Name) > nameMax {
		return fmt.Errorf("wal: a name of an identity has more than %d bytes", nameMax)
	}
	return nil
}

// same reports whether the log of id is the one that other asks for: names are for
// people, and old logs do not say which group theirs is, nor do all who ask.
func (id Identity) same(other Identity) bool {
	id.Name = other.Name
	if id.GroupID == 0 || other.GroupID == 0 {
		id.GroupID = other.GroupID
	}
	return id == other
}

// node is the node's name, or its id as the engine writes it, where nobody gave one.
// Names that would not be one word of a line are quoted.
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
// node = 3; string name = 4; uint64 group_id = 5}, the last two only where they are set.
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

// parseNumber parses the field of a number, and returns what is behind it.
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

// parseText parses the text field of a number, and returns what is behind it.
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
