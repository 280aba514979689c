package raft

import (
	"encoding/binary"
	"errors"
)

// Each message of a node begins with an envelope, which is checked before anything after
// it is parsed:
//
//	byte    version of the envelope
//	byte    kind of the content
//	uint64  identity of the sender's group; 0: it has none yet
//	uint64  id of the sender
//
// Numbers are big-endian.
const (
	envelopeVersion = 1
	envelopeBytes   = 2 + 8 + 8
)

// kind is the kind of an envelope's content.
type kind byte

const (
	kindRaft         kind = 1 + iota // a message of the engine, in protobuf's format
	kindIntroduction                 // see introduction
	kindNotice                       // see notice
	kindPart                         // see part
	kindReceipt                      // see receipt
	kinds
)

// envelope identifies the sender and the content of a message.
type envelope struct {
	kind    kind
	groupID uint64
	id      uint64
}

func (e envelope) append(b []byte) []byte {
	b = append(b, envelopeVersion, byte(e.kind))
	b = binary.BigEndian.AppendUint64(b, e.groupID)
	return binary.BigEndian.AppendUint64(b, e.id)
}

var errEnvelope = errors.New("raft: not a message between nodes")

// openEnvelope returns the envelope and the content.
func openEnvelope(b []byte) (e envelope, payload []byte, err error) {
	if len(b) < envelopeBytes || b[0] != envelopeVersion {
		return e, nil, errEnvelope
	}
	e = envelope{kind(b[1]), binary.BigEndian.Uint64(b[2:]), binary.BigEndian.Uint64(b[10:])}
	if e.kind < kindRaft || e.kind >= kinds || e.id == 0 || e.id > idMask {
		return e, nil, errEnvelope
	}
	return e, b[envelopeBytes:], nil
}
