package memberlist

import (
	"testing"

	"github.com/topogen/topogen/internal/test/allocated"
	"github.com/topogen/topogen/runtime/member"
)

// FuzzPackets checks the bytes as a packet, as a stream that arrives at once, and as a stream that
// arrives in small segments. It limits the memory that the checks allocate.
func FuzzPackets(f *testing.F) {
	f.Add([]byte("\x00\x82\xa5SeqNo\x07\xa4Node\xa2n1"))
	f.Add(compound([]byte("\x0b\x81\xa5SeqNo\x07")))
	f.Add(pushPull(1, 0, []byte("\x87\xa4Addr\xa0\xabIncarnation\xcf\x00\x00\x00\x00\x00\x00\x00\x01\xa4Meta\xc0\xa4Name\xda\x00\x01n\xa4Port\x01\xa5State\x00\xa3Vsn\xa0")...))
	f.Add(appendMeta(nil, &member.Node{Address: "host:1", Meta: []byte("disks"), Boot: 77}))
	f.Fuzz(func(t *testing.T, b []byte) {
		allocated.Within(t, 50*len(b), func() {
			_ = checkPacket(b)
			_, _ = parseMeta(b)
			whole := checkStream(&input{rest: b, left: streamMax})
			rest := b
			in := &input{left: streamMax, more: func() (segment []byte) {
				if len(rest) == 0 {
					return nil
				}
				n := min(3, len(rest))
				segment, rest = rest[:n:n], rest[n:]
				return segment
			}}
			if parts := checkStream(in); (parts == nil) != (whole == nil) {
				t.Errorf("the message is checked as %v, and in parts as %v", whole, parts)
			}
		})
	})
}
