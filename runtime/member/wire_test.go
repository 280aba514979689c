package member

import (
	"bytes"
	"encoding/binary"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/topogen/topogen/internal/test/allocated"
	"github.com/topogen/topogen/internal/test/speed"
)

// messages generates any message that a node can send.
func messages() *rapid.Generator[*message] {
	return rapid.Custom(func(t *rapid.T) *message {
		count := func(name string, least uint64) uint64 { return rapid.Uint64Range(least, countMax).Draw(t, name) }
		m := &message{
			kind:   kind(rapid.IntRange(1, int(kindsEnd)-1).Draw(t, "kind")),
			cutOff: rapid.Bool().Draw(t, "cutOff"), want: rapid.Bool().Draw(t, "want"),
			boot: count("boot", 1), digest: rapid.Uint64().Draw(t, "digest"),
			records: make([]record, 0),
		}
		known := func() {
			m.knownBoot, m.knownIncarnation = count("knownBoot", 0), count("knownIncarnation", 0)
			m.knownStatus = status(rapid.IntRange(0, statuses-1).Draw(t, "knownStatus"))
		}
		switch m.kind {
		case kindPing:
			m.sequence = rapid.Uint64().Draw(t, "sequence")
			known()
		case kindAck:
			m.sequence, m.echo = rapid.Uint64().Draw(t, "sequence"), count("echo", 0)
			known()
		case kindNack:
			m.sequence, m.echo = rapid.Uint64().Draw(t, "sequence"), count("echo", 0)
		case kindPingRequest:
			m.sequence = rapid.Uint64().Draw(t, "sequence")
			m.target = rapid.StringN(1, -1, NameMax).Draw(t, "target")
			m.within = time.Duration(rapid.IntRange(0, int(withinMax/time.Millisecond)).Draw(t, "within")) * time.Millisecond
		case kindLeave:
			m.sequence = rapid.Uint64().Draw(t, "sequence")
		}
		for range rapid.IntRange(0, 5).Draw(t, "records") {
			m.records = append(m.records, anyRecord(t))
		}
		return m
	})
}

func anyRecord(t *rapid.T) record {
	r := record{
		name:        rapid.StringN(1, -1, NameMax).Draw(t, "name"),
		address:     rapid.StringN(0, -1, AddressMax).Draw(t, "address"),
		meta:        rapid.SliceOfN(rapid.Byte(), 0, MetaMax).Draw(t, "meta"),
		boot:        rapid.Uint64Range(1, countMax).Draw(t, "boot"),
		incarnation: rapid.Uint64Range(0, countMax).Draw(t, "incarnation"),
		status:      status(rapid.IntRange(0, statuses-1).Draw(t, "status")),
	}
	if len(r.meta) == 0 {
		r.meta = nil
	}
	switch {
	case r.status == statusSuspect:
		r.accusers, _ = addAccusers(nil, rapid.SliceOfN(rapid.Uint32(), 1, accusersMax).Draw(t, "accusers"))
	case r.status >= statusDead:
		r.age = time.Duration(rapid.IntRange(0, int(ageMax/time.Second)).Draw(t, "age")) * time.Second
	}
	return r
}

// TestMessagesRoundTrip: each message is decoded to itself, a record is not larger than
// recordSize, and each shorter message is refused.
func TestMessagesRoundTrip(t *testing.T) {
	speed.Checks(t, 40, 100, 10_000)
	rapid.Check(t, func(t *rapid.T) {
		m := messages().Draw(t, "message")
		b := appendMessage(nil, m)
		got, err := decodeMessage(b)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(&got, m) {
			t.Fatalf("got %+v, want %+v", &got, m)
		}
		size := headSize
		for i := range m.records {
			need := len(appendRecord(nil, &m.records[i]))
			if limit := recordSize(&m.records[i]); need > limit {
				t.Fatalf("a record has %d bytes, recordSize says %d", need, limit)
			}
			size += need
		}
		if len(b) > size {
			t.Fatalf("a message has %d bytes, headSize and its records %d", len(b), size)
		}
		cut := rapid.IntRange(0, len(b)-1).Draw(t, "cut")
		if _, err := decodeMessage(b[:cut]); !errors.Is(err, ErrMalformed) {
			t.Fatalf("the first %d of %d bytes: %v", cut, len(b), err)
		}
	})
}

// TestMalformedMessages: each mistake is refused with a sentence that says what is wrong.
func TestMalformedMessages(t *testing.T) {
	head := func(k kind) []byte { return appendMessage(nil, &message{kind: k, boot: 1})[:3+1+8] }
	gossip := func(records ...byte) []byte { return append(head(kindGossip), records...) }
	long := func(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }
	name := append(long(NameMax+1), strings.Repeat("x", NameMax+1)...)
	for _, c := range []struct {
		want    string
		payload []byte
	}{
		{"it ends too early", nil},
		{"its version is 2, this node has version 1", []byte{2}},
		{"its kind 0 is unknown", []byte{1, 0, 0}},
		{"its kind 99 is unknown", []byte{1, 99, 0}},
		{"its flags 0x80 are unknown", []byte{1, byte(kindGossip), 0x80}},
		{"its sender has no boot id", append([]byte{1, byte(kindGossip), 0, 0}, make([]byte, 9)...)},
		{"the boot id is 9223372036854775808, at most", append([]byte{1, byte(kindGossip), 0}, binary.AppendUvarint(nil, 1<<63)...)},
		{"a number is incomplete or too large", append([]byte{1, byte(kindGossip), 0}, bytes.Repeat([]byte{0xff}, 20)...)},
		{"a number is not in its shortest form", []byte{1, byte(kindGossip), 0, 0x81, 0}},
		{"it claims 100 records in 3 bytes", gossip(100, 1, 2, 3)},
		{"the number of records is 2049, at most 2048 is allowed", gossip(long(2049)...)},
		{"status 4 is unknown", gossip(1, 4, 0, 0, 0, 0, 0, 0)},
		{"a name is empty", gossip(1, 0, 0, 0, 0, 1, 0, 0)},
		{"a text has 129 bytes, at most 128", gossip(append([]byte{1, 0}, name...)...)},
		{"it ends too early: 5 bytes are left of 100", gossip(1, 0, 100, 'n', 0, 0, 0, 0)},
		{"the name is not UTF-8", gossip(1, 0, 1, 0xff, 0, 0, 1, 0)},
		{"a record has no boot id", gossip(1, 0, 1, 'n', 0, 0, 0, 0)},
		{"a record has 5 accusers, at most 4 are allowed", gossip(1, 1, 1, 'n', 0, 0, 1, 0, 5)},
		{"a suspicion has no accuser", gossip(1, 1, 1, 'n', 0, 0, 1, 0, 0)},
		{"the accusers of a record are not sorted", gossip(1, 1, 1, 'n', 0, 0, 1, 0, 2, 0, 0, 0, 2, 0, 0, 0, 1)},
		{"the age is 315360001, at most", gossip(append([]byte{1, 2, 1, 'n', 0, 0, 1, 0}, long(315360001)...)...)},
		{"the time for the answer is 3600001, at most", append(append(head(kindPingRequest), 1, 1, 'n'), long(3600001)...)},
		{"1 bytes follow the end", gossip(0, 0)},
		{"it has 65537 bytes, at most 65536 are allowed", make([]byte, messageMax+1)},
	} {
		_, err := decodeMessage(c.payload)
		if !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%x: got %v, want %q", c.payload[:min(len(c.payload), 40)], err, c.want)
		}
	}
}

// FuzzDecode: the decoder accepts only what the encoder produces, and a core survives
// each accepted message with its limits kept.
func FuzzDecode(f *testing.F) {
	for k := kindPing; k < kindsEnd; k++ {
		m := &message{kind: k, boot: 7, target: "n2", knownBoot: 3, knownStatus: statusSuspect, records: []record{
			{name: "n2", address: "a:1", boot: 9, status: statusSuspect, accusers: []uint32{1, 2}},
			{name: "n3", address: "b:1", boot: 9, status: statusDead, age: time.Minute},
		}}
		f.Add(appendMessage(nil, m))
	}
	f.Add(appendMessage(nil, &message{kind: kindPing, boot: 7, knownBoot: 3, records: []record{{name: "n3", address: "n2", boot: 1}}})) // an address that is not of a simulated node
	f.Fuzz(func(t *testing.T, b []byte) {
		var m message
		var err error
		allocated.Within(t, 30*len(b), func() { m, err = decodeMessage(b) })
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatal(err)
			}
			return
		}
		if again := appendMessage(nil, &m); !bytes.Equal(again, b) {
			t.Fatalf("decoded and encoded again: %x, was %x", again, b)
		}
		w := newWorld(t, 1)
		n := w.add("n1", Config{}, "n1", "n2", "n3")
		w.add("n2", Config{})
		w.add("n3", Config{})
		n.boot()
		for i := range 3 {
			if err := n.core.Step(time.Duration(i)*time.Second, "n2", b); err != nil {
				t.Fatal(err)
			}
			n.core.Tick(time.Duration(i)*time.Second + 1)
			n.effects()
			checkCore(t, n.core)
		}
	})
}
