package fsm

import "encoding/binary"

// CommandsMax is the maximum number of commands in an entry. The number of a session
// has positionBits bits for the position of a command, which limits CommandsMax.
const CommandsMax = 1 << positionBits

// positionBits is the number of low bits of a session's number that hold the position
// of the opening command in its entry.
const positionBits = 20

// Batch builds the data of one entry of a log: a sequence of commands. Its zero value
// is an empty batch with the time 0. Reset makes it ready for the next entry. It stops
// allocating once its buffer has grown.
//
// All commands have a client, a sequence and a floor, except marks, sums and commands
// that open a session. The client is the number of the session. The sequence is unique
// in the session and starts at 1. The floor is the lowest sequence whose result the
// client waits for.
type Batch struct {
	// Version is the format version of the entry, for groups whose members may not
	// support a newer one. 0 means the newest version. Reset writes it.
	Version byte

	data []byte
	n    int
	last struct{ client, sequence, floor uint64 } // of the last command
}

// Reset empties the batch. now is the proposer's wall clock in Unix nanoseconds.
func (b *Batch) Reset(now int64) {
	b.data = binary.AppendVarint(append(b.data[:0], b.version()), now)
	b.n, b.last.client, b.last.sequence, b.last.floor = 0, 0, 0, 0
}

func (b *Batch) version() byte {
	if b.Version == 0 {
		return entryVersion
	}
	return b.Version
}

// Open opens a session of a client, whose name has 1 to 64 bytes. nonce is a random
// number: a repeated command with the same nonce returns the same session. The result
// has the nonce instead of the client, and the sequence 0. The number of the session is
// in [Applied]. A client has at most 4 sessions: opening another one ends its
// least recently used one.
func (b *Batch) Open(client string, nonce uint64) {
	b.open(commandOpenClient, nonce)
	if b.version() >= openersVersion {
		b.data = append(binary.AppendUvarint(b.data, uint64(len(client))), client...)
	}
}

// OpenNode opens a session of a node, whose number is not 0. The session does not
// expire, and sessions that clients open do not end it.
func (b *Batch) OpenNode(node, nonce uint64) {
	b.open(commandOpenNode, nonce)
	if b.version() >= openersVersion {
		b.data = binary.AppendUvarint(b.data, node)
	}
}

// Describe announces how a node, the proposer, reads and writes states and updates, see
// [Replicated.Description]. It has no session. Its result has the nonce instead of the
// client, and the sequence 0. An error that matches [ErrIncompatible] means that the
// proposer cannot read everything that the log may hold.
func (b *Batch) Describe(node uint64, description string, nonce uint64) {
	if b.version() < openersVersion || description == "" {
		return
	}
	b.command()
	b.last.client, b.last.sequence, b.last.floor = nonce, 0, 0 // as the reader does
	b.data = binary.AppendUvarint(append(b.data, commandDescribe), nonce)
	b.data = binary.AppendUvarint(b.data, node)
	b.data = append(binary.AppendUvarint(b.data, uint64(len(description))), description...)
}

// Mark makes each replica compute the checksum of its state after the entry.
func (b *Batch) Mark() {
	if b.version() < openersVersion {
		return
	}
	b.command()
	b.last.client, b.last.sequence, b.last.floor = 0, 0, 0 // as the reader does
	b.data = append(b.data, commandMark)
}

// Sum announces the checksum of a node at the mark in entry at.
func (b *Batch) Sum(node, at, sum uint64) {
	if b.version() < openersVersion {
		return
	}
	b.command()
	b.last.client, b.last.sequence, b.last.floor = node, at, 0 // as the reader does
	b.data = binary.AppendUvarint(append(b.data, commandSum), node)
	b.data = binary.AppendUvarint(b.data, at)
	b.data = binary.LittleEndian.AppendUint64(b.data, sum)
}

func (b *Batch) open(kind byte, nonce uint64) {
	if b.version() < openersVersion {
		kind = commandOpen
	}
	b.command()
	b.last.client, b.last.sequence, b.last.floor = nonce, 0, 0 // as the reader does
	b.data = binary.AppendUvarint(append(b.data, kind), nonce)
}

// Update applies an update and commits it together with the updates added before it.
func (b *Batch) Update(client, sequence, floor uint64, update []byte) {
	b.ordered(commandUpdate, client, sequence, floor)
	b.bytes(update)
}

// Add applies an update and does not commit it.
func (b *Batch) Add(client, sequence, floor uint64, update []byte) {
	b.ordered(commandAdd, client, sequence, floor)
	b.bytes(update)
}

// Commit commits all updates that were added.
func (b *Batch) Commit(client, sequence, floor uint64) {
	b.ordered(commandCommit, client, sequence, floor)
}

// Revert undoes and drops all updates that are not committed.
func (b *Batch) Revert(client, sequence, floor uint64) {
	b.ordered(commandRevert, client, sequence, floor)
}

// Len returns the number of commands.
func (b *Batch) Len() int { return b.n }

// Bytes returns the entry's data, which is valid until the batch is changed.
func (b *Batch) Bytes() []byte {
	if len(b.data) == 0 {
		b.Reset(0)
	}
	return b.data
}

func (b *Batch) ordered(kind byte, client, sequence, floor uint64) {
	b.command()
	last := &b.last
	follows := client == last.client && floor == last.floor && sequence == last.sequence+1
	last.client, last.sequence, last.floor = client, sequence, floor
	if follows {
		b.data = append(b.data, kind|commandFollows)
		return
	}
	b.data = binary.AppendUvarint(append(b.data, kind), client)
	b.data = binary.AppendUvarint(b.data, sequence)
	b.data = binary.AppendVarint(b.data, int64(sequence-floor)) // mostly small
}

func (b *Batch) command() {
	if b.n == CommandsMax {
		panic("fsm: batch is full")
	}
	if len(b.data) == 0 {
		b.Reset(0)
	}
	b.n++
}

func (b *Batch) bytes(v []byte) {
	b.data = append(binary.AppendUvarint(b.data, uint64(len(v))), v...)
}
