package member

import (
	"encoding/binary"
	"time"
)

// wireVersion is the first byte of each message. A message with another version is
// refused.
const wireVersion = 1

const (
	flagCutOff = 1 << iota
	flagWant
	flagsKnown = flagCutOff | flagWant
)

// appendMessage appends a message to b: the version, the kind, the flags, the boot id and
// the digest of the sender, the fields of the kind, and the records. Numbers are varints
// of encoding/binary, except the digest, which has 8 bytes, big-endian.
func appendMessage(b []byte, m *message) []byte {
	flags := byte(0)
	if m.cutOff {
		flags |= flagCutOff
	}
	if m.want {
		flags |= flagWant
	}
	b = append(b, wireVersion, byte(m.kind), flags)
	b = binary.AppendUvarint(b, m.boot)
	b = binary.BigEndian.AppendUint64(b, m.digest)
	switch m.kind {
	case kindPing:
		b = binary.AppendUvarint(b, m.sequence)
		b = appendKnown(b, m)
	case kindAck:
		b = binary.AppendUvarint(b, m.sequence)
		b = binary.AppendUvarint(b, m.echo)
		b = appendKnown(b, m)
	case kindNack:
		b = binary.AppendUvarint(b, m.sequence)
		b = binary.AppendUvarint(b, m.echo)
	case kindPingRequest:
		b = binary.AppendUvarint(b, m.sequence)
		b = appendText(b, m.target)
		b = binary.AppendUvarint(b, uint64(m.within/time.Millisecond))
	case kindLeave:
		b = binary.AppendUvarint(b, m.sequence)
	}
	b = binary.AppendUvarint(b, uint64(len(m.records)))
	for i := range m.records {
		b = appendRecord(b, &m.records[i])
	}
	return b
}

func appendKnown(b []byte, m *message) []byte {
	b = binary.AppendUvarint(b, m.knownBoot)
	b = binary.AppendUvarint(b, m.knownIncarnation)
	return append(b, byte(m.knownStatus))
}

func appendRecord(b []byte, r *record) []byte {
	b = append(b, byte(r.status))
	b = appendText(b, r.name)
	b = appendText(b, r.address)
	b = appendText(b, r.meta)
	b = binary.AppendUvarint(b, r.boot)
	b = binary.AppendUvarint(b, r.incarnation)
	switch {
	case r.status == statusSuspect:
		b = append(b, byte(len(r.accusers)))
		for _, a := range r.accusers {
			b = binary.BigEndian.AppendUint32(b, a)
		}
	case r.status >= statusDead:
		// Rounded up: otherwise the age of a claim could shrink from node to node, and
		// nodes would remind each other of a member for ever.
		b = binary.AppendUvarint(b, uint64((r.age+time.Second-1)/time.Second))
	}
	return b
}

func appendText[T string | []byte](b []byte, text T) []byte {
	b = binary.AppendUvarint(b, uint64(len(text)))
	return append(b, text...)
}

// recordSize returns the largest number of bytes that appendRecord appends for a record.
func recordSize(r *record) int {
	const rest = 1 + 3*2 + 2*binary.MaxVarintLen64 + 1 + 4*accusersMax
	return rest + len(r.name) + len(r.address) + len(r.meta)
}
