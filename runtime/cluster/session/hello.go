package session

import (
	"encoding/binary"

	"github.com/topogen/topogen/runtime/internal/fields"
)

// hello presents a process to the peer.
type hello struct {
	version            uint64
	from, nonce        uint64 // boot id of the sender, and a random number that the answer repeats
	to, echo           uint64 // the same of the hello that this one answers; 0: none
	accepted, knows    bool   // the sender has accepted the receiver, and knows that it was accepted
	topology, plan     string
	fromName, destName string
}

const (
	flagAccepted = 1
	flagKnows    = 2
)

func (h *hello) append(b []byte) []byte {
	b = append(b, kindHello)
	b = binary.AppendUvarint(b, h.version)
	b = binary.LittleEndian.AppendUint64(b, h.from)
	b = binary.LittleEndian.AppendUint64(b, h.nonce)
	b = binary.LittleEndian.AppendUint64(b, h.to)
	b = binary.LittleEndian.AppendUint64(b, h.echo)
	var flags byte
	if h.accepted {
		flags |= flagAccepted
	}
	if h.knows {
		flags |= flagKnows
	}
	b = append(b, flags)
	for _, s := range []string{h.topology, h.plan, h.fromName, h.destName} {
		b = fields.AppendText(b, s)
	}
	return b
}

// parseHello reads a hello. Of another version it reads only the version, from and nonce:
// they have the same place in all versions, so that a refusal can be sent.
func parseHello(frame []byte) (h hello, err error) {
	r := fields.Reader{B: frame[1:]}
	h.version = r.Uint()
	h.from, h.nonce = r.Fixed64(), r.Fixed64()
	if r.Err == nil && h.version != Version {
		return h, nil
	}
	h.to, h.echo = r.Fixed64(), r.Fixed64()
	flags := r.Byte()
	h.accepted, h.knows = flags&flagAccepted != 0, flags&flagKnows != 0
	h.topology, h.plan = r.Text(nameBytesMax), r.Text(planBytesMax)
	h.fromName, h.destName = r.Text(nameBytesMax), r.Text(nameBytesMax)
	switch {
	case r.Err != nil:
		return h, malformed("a hello must be complete, got %d bytes", len(frame))
	case len(r.B) > 0:
		return h, malformed("a hello must end after its names, got %d more bytes", len(r.B))
	case h.from == 0:
		return h, malformed("the boot id of a hello must not be 0")
	}
	return h, nil
}

// refusal says why a hello is not accepted. Its format is the same in all versions.
type refusal struct {
	version  uint64
	from     uint64 // boot id of the process that refuses
	to, echo uint64 // boot id and nonce of the hello
	reason   Reason
	text     string
}

func (f *refusal) append(b []byte) []byte {
	b = append(b, kindRefusal)
	b = binary.AppendUvarint(b, f.version)
	b = binary.LittleEndian.AppendUint64(b, f.from)
	b = binary.LittleEndian.AppendUint64(b, f.to)
	b = binary.LittleEndian.AppendUint64(b, f.echo)
	b = append(b, byte(f.reason))
	return fields.AppendText(b, f.text[:min(len(f.text), textBytesMax)])
}

func parseRefusal(frame []byte) (f refusal, err error) {
	r := fields.Reader{B: frame[1:]}
	f.version = r.Uint()
	f.from, f.to, f.echo = r.Fixed64(), r.Fixed64(), r.Fixed64()
	f.reason, f.text = Reason(r.Byte()), r.Text(textBytesMax)
	if r.Err != nil || len(r.B) > 0 {
		return f, malformed("a refusal must be complete and end after its text, got %d bytes", len(frame))
	}
	return f, nil
}
