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
// Each command but Open has a client, whose session it belongs to, a sequence,
// which is unique in that session and starts at 1, and a floor: the lowest sequence
// whose result the client waits for.
type Batch struct {
	data []byte
	n    int
}

// Reset empties the batch. now is the proposer's wall clock in Unix nanoseconds.
func (b *Batch) Reset(now int64) {
	b.data = binary.AppendVarint(append(b.data[:0], entryVersion), now)
	b.n = 0
}

// Open opens a session. Its result has nonce in place of the client, and the
// sequence 0; the client's number is in [Applied].
func (b *Batch) Open(nonce uint64) { b.command(commandOpen, nonce) }

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
	b.command(kind, client)
	b.data = binary.AppendUvarint(b.data, sequence)
	b.data = binary.AppendVarint(b.data, int64(sequence-floor)) // mostly small
}

func (b *Batch) command(kind byte, client uint64) {
	if b.n == CommandsMax {
		panic("fsm: batch is full")
	}
	if len(b.data) == 0 {
		b.Reset(0)
	}
	b.n++
	b.data = binary.AppendUvarint(append(b.data, kind), client)
}

func (b *Batch) bytes(v []byte) {
	b.data = append(binary.AppendUvarint(b.data, uint64(len(v))), v...)
}
