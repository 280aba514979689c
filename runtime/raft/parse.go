package raft

import (
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// A few bytes of a hostile message can take a hundred times as much memory after parsing,
// because an empty entry takes two bytes of the message. So the entries are counted
// first.
const (
	entriesMax   = messageBytesMax / 4    // in one message: the engine counts at least four bytes for each
	parsedEntry  = 160                    // bytes that a parsed entry takes in addition to its data
	peerBytesMax = entryBytesMax + 64<<10 // of a message between nodes: an entry, or a part of a snapshot, with its frame
)

// Fields of the engine's message in protobuf's wire format.
const (
	fieldEntries   = 7
	fieldSnapshot  = 9
	fieldResponses = 14 // internal to the engine; no node sends it
)

// parseEngine parses a message of the engine. Only the message in a part may have a
// snapshot.
func parseEngine(b []byte, ofPart bool) (*pb.Message, error) {
	entries := 0
	for rest := b; len(rest) > 0; {
		number, _, n := protowire.ConsumeField(rest)
		if n < 0 {
			return nil, fmt.Errorf("%w: %w", ErrMessage, protowire.ParseError(n))
		}
		rest = rest[n:]
		switch {
		case number == fieldEntries:
			entries++
		case number == fieldResponses:
			return nil, fmt.Errorf("%w: it holds internal messages of the engine", ErrMessage)
		case number == fieldSnapshot && !ofPart:
			return nil, fmt.Errorf("%w: a snapshot must be sent in parts", ErrMessage)
		}
	}
	if entries > entriesMax {
		return nil, fmt.Errorf("%w: it must have at most %d entries, got %d", ErrMessage, entriesMax, entries)
	}
	m := new(pb.Message)
	if err := proto.Unmarshal(b, m); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMessage, err)
	}
	return m, nil
}
