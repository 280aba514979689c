package cluster

import (
	"bytes"
	"testing"

	"github.com/topogen/topogen/internal/test/allocated"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/piper/border"
)

// FuzzPairs reads any bytes as the messages between two nodes of a pair of instances and of a group.
func FuzzPairs(f *testing.F) {
	f.Add(appendOpen(nil, border.Pair{From: 1, FromInstance: 2, To: 3, ToInstance: -1})[1:])
	f.Add([]byte{2, 1, 'a', 'b'})
	f.Add((&groupMessage{kind: controlStatus, group: 1, phase: piper.GroupClosing, round: 7}).append(nil)[1:])
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		allocated.Within(t, 0, func() {
			if p, err := readOpen(b); err == nil {
				if again, err := readOpen(appendOpen(nil, p)[1:]); err != nil || again != p {
					t.Errorf("%+v is read as %+v: %v", p, again, err)
				}
			}
			if messages, skip, data, err := readChunk(b); err == nil && (skip >= messages || messages > len(data) || !bytes.HasSuffix(b, data)) {
				t.Errorf("%x has %d messages, %d to skip and %d bytes", b, messages, skip, len(data))
			}
			for _, kind := range []byte{controlStatus, controlQuery, controlAnswer} {
				var m groupMessage
				if m.read(kind, newReader(b)) == nil && m.kind != kind {
					t.Errorf("the kind %d is read as %d", kind, m.kind)
				}
			}
		})
	})
}
