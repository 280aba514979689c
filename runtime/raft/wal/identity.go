package wal

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// nameMax bounds the names of an identity, which stand at the head of each segment.
const nameMax = 1 << 10

func (id Identity) check() error {
	if len(id.Topology) > nameMax || len(id.Group) > nameMax {
		return fmt.Errorf("wal: a name of an identity has more than %d bytes", nameMax)
	}
	return nil
}

// appendIdentity appends the message {string topology = 1; string group = 2; uint64
// node = 3}.
func appendIdentity(b []byte, id Identity) []byte {
	b = protowire.AppendString(protowire.AppendTag(b, 1, protowire.BytesType), id.Topology)
	b = protowire.AppendString(protowire.AppendTag(b, 2, protowire.BytesType), id.Group)
	return protowire.AppendVarint(protowire.AppendTag(b, 3, protowire.VarintType), id.Node)
}

func parseIdentity(b []byte) (id Identity, ok bool) {
	for i, text := range []*string{&id.Topology, &id.Group} {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 || number != protowire.Number(i+1) || kind != protowire.BytesType {
			return id, false
		}
		v, m := protowire.ConsumeBytes(b[n:])
		if m < 0 {
			return id, false
		}
		*text, b = string(v), b[n+m:]
	}
	number, kind, n := protowire.ConsumeTag(b)
	if n < 0 || number != 3 || kind != protowire.VarintType {
		return id, false
	}
	v, m := protowire.ConsumeVarint(b[n:])
	id.Node = v
	return id, m > 0 && n+m == len(b)
}
