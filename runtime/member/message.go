package member

import (
	"time"

	"github.com/topogen/topogen/runtime/transport"
)

// kind is the kind of a message.
type kind uint8

const (
	kindPing        kind = iota + 1 // asks for an ack; carries the claim of the sender about itself
	kindAck                         // answers a ping, a ping-request whose target is alive, or a leave
	kindPingRequest                 // asks a helper to ping a target
	kindNack                        // answers a ping-request: the target did not answer the helper
	kindGossip                      // carries claims alone
	kindSync                        // carries all claims of the sender, or a part of them
	kindLeave                       // announces the end of the sender; asks for an ack
	kindsEnd
)

var kindNames = [kindsEnd]string{"", "ping", "ack", "ping-request", "nack", "gossip", "sync", "leave"}

// message is what nodes send each other.
type message struct {
	kind   kind
	cutOff bool   // the sender reaches no majority, so it may not receive anything
	boot   uint64 // of the sender
	digest uint64 // of all claims of the sender

	sequence uint64 // ping, ping-request and leave: a number that the answer repeats
	echo     uint64 // ack and nack: the boot id of the process that asked

	// ping and ack: what the sender knows about the receiver, so that the receiver can
	// refute it (Lifeguard's buddy system), and can send its claim about itself if the
	// sender has an older one. The boot id 0 means that the sender knows nothing.
	knownBoot, knownIncarnation uint64
	knownStatus                 status

	target string        // ping-request
	within time.Duration // ping-request: when the helper must answer; whole milliseconds
	want   bool          // sync: asks for the receiver's claims

	records []record
}

// Limits of a message. A message above them is malformed.
const (
	// NameMax is the longest name of a node in bytes: that of a DNS label and more, and
	// short enough that a frame holds several.
	NameMax = 128
	// AddressMax is the length of the longest address.
	AddressMax = transport.AddressBytesMax
	// MetaMax is the most meta data of a node: a few roles. Each claim about the node
	// carries it.
	MetaMax = 256

	messageMax  = 64 << 10             // bytes of a message: one part of a sync, with room
	recordsMax  = 2048                 // records of a message: more than the shortest records that fit into a part
	accusersMax = confirmationsMax + 1 // the first accuser, and nodes that confirm
	withinMax   = time.Hour            // no helper keeps a request longer
	ageMax      = 10 * 365 * 24 * time.Hour
	countMax    = 1 << 62 // boot ids and incarnations: leaves room for increments
)

const (
	// frameBytes limits a ping, an ack and a gossip message: the payload of one Ethernet
	// packet. News that does not fit waits for the next message.
	frameBytes = 1400
	// syncBytes limits a part of a sync. A cluster with 1,000 nodes has about 4 parts.
	syncBytes = 16 << 10
)
