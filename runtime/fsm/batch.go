package fsm

import "encoding/binary"

// CommandsMax is how many commands an entry holds at most: the positions that a
// client's number has room for.
const CommandsMax = 1 << positionBits

// positionBits of a client's number say where in its entry the session was opened.
const positionBits = 20

// Batch builds the data of one entry of a log: a sequence of commands. Its zero
// value is an empty batch of the time 0. It is reused by Reset, and allocates
// nothing when it has grown to what it needs.
//
// Each command but those that open a session, and [Batch.Mark] and [Batch.Sum], has a client, which is the session's
// number, a sequence, which is unique in that session and starts at 1, and a floor:
// the lowest sequence whose result the client waits for.
type Batch struct {
	// Version is the version in which entries are written, for groups with members that
	// know no newer one; 0: the newest. Reset heeds it.
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

// Open opens a session of a client, whose name has 1 to 64 bytes. nonce is drawn at
// random: where the command is repeated it stands for the same session. The result
// has nonce in place of the client, and the sequence 0; the session's number is in
// [Applied]. A client has at most 4 sessions: another one ends the one of them that
// was used longest ago.
func (b *Batch) Open(client string, nonce uint64) {
	b.open(commandOpenClient, nonce)
	if b.version() >= openersVersion {
		b.data = append(binary.AppendUvarint(b.data, uint64(len(client))), client...)
	}
}

// OpenNode opens a session of a node, whose number is not 0. It does not end by age,
// nor by those that clients open.
func (b *Batch) OpenNode(node, nonce uint64) {
	b.open(commandOpenNode, nonce)
	if b.version() >= openersVersion {
		b.data = binary.AppendUvarint(b.data, node)
	}
}

// Describe says how a node, the proposer, reads and writes states and updates, as
// [Replicated.Description] does. It has no session. Its result has nonce in place of
// the client, and the sequence 0; an error that matches [ErrIncompatible] says that
// the proposer does not know all that the log may hold.
func (b *Batch) Describe(node uint64, description string, nonce uint64) {
	if b.version() < openersVersion || description == "" {
		return
	}
	b.command()
	b.last.client, b.last.sequence, b.last.floor = nonce, 0, 0 // as it is read
	b.data = binary.AppendUvarint(append(b.data, commandDescribe), nonce)
	b.data = binary.AppendUvarint(b.data, node)
	b.data = append(binary.AppendUvarint(b.data, uint64(len(description))), description...)
}

// Mark has each replica sum its state up, behind the entry.
func (b *Batch) Mark() {
	if b.version() < openersVersion {
		return
	}
	b.command()
	b.last.client, b.last.sequence, b.last.floor = 0, 0, 0 // as it is read
	b.data = append(b.data, commandMark)
}

// Sum says the sum that a node has at the mark in an entry.
func (b *Batch) Sum(node, at, sum uint64) {
	if b.version() < openersVersion {
		return
	}
	b.command()
	b.last.client, b.last.sequence, b.last.floor = node, at, 0 // as it is read
	b.data = binary.AppendUvarint(append(b.data, commandSum), node)
	b.data = binary.AppendUvarint(b.data, at)
	b.data = binary.LittleEndian.AppendUint64(b.data, sum)
}

func (b *Batch) open(kind byte, nonce uint64) {
	if b.version() < openersVersion {
		kind = commandOpen
	}
	b.command()
	b.last.client, b.last.sequence, b.last.floor = nonce, 0, 0 // as it is read
	b.data = binary.AppendUvarint(append(b.data, kind), nonce)
}

// Update applies an update and commits it, and with it those added before it.
func (b *Batch) Update(client, sequence, floor uint64, update []byte) {
	b.ordered(commandUpdate, client, sequence, floor)
	b.bytes(update)
}

// Add applies an update and does not commit it.
func (b *Batch) Add(client, sequence, floor uint64, update []byte) {
	b.ordered(commandAdd, client, sequence, floor)
	b.bytes(update)
}

// Commit commits what was added.
func (b *Batch) Commit(client, sequence, floor uint64) {
	b.ordered(commandCommit, client, sequence, floor)
}

// Revert undoes and drops what is not committed.
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
