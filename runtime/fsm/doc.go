// Package fsm keeps a state that only updates change: the state machine of
// rast.md 2.15.
//
// A user writes the state, and an update of it, which may return a value:
//
//	type Accounts struct{ Cents map[string]int64 }
//
//	type Transfer struct {
//		From, To string
//		Cents    int64
//	}
//
//	func (t *Transfer) Update(a *Accounts) (Balance, error) {
//		if a.Cents[t.From] < t.Cents {
//			return Balance{}, ErrNoMoney // nothing has changed
//		}
//		a.Cents[t.From] -= t.Cents
//		a.Cents[t.To] += t.Cents
//		return Balance{a.Cents[t.From]}, nil
//	}
//
// A [Definition] says what a machine is made of. Three types apply updates. [Machine]
// keeps a list of updates, and knows which of them are applied and which are committed.
// [Processor] is a Machine as a processor of a topology, which is what `kind: fsm`
// is in memory. [Replicated] applies the entries of a log, on one disk or on several
// nodes: runtime/raft has the log. A [Batch] builds an entry.
//
// # Machine
//
// Updates are added, applied in order, committed, and forgotten when they are both
// applied and committed. Updates that are not committed can be reverted, newest first.
// An update that fails stays the next one to be applied. This is rast.md with three
// corrections: adding an update does not commit it, reverting stops at the last committed
// update and drops the updates that it undoes, and no update is forgotten before it was
// applied.
//
// # Proposals
//
// A proposal is an update with an answer, [Result]. It is applied after all earlier
// updates and committed with them, and the answer holds what Update has returned.
// Or it changes nothing, and the answer holds the error. [OutcomeKnown] says whether
// an error tells which of the two has happened.
//
// # Exactly once
//
// With a log, each command has a session, a number in the session's sequence, and a
// floor: the client waits for no result of a number below it. A [Replicated] applies
// each (session, sequence) once, also after restarts, and however often it is in the
// log. It answers repeated ones with the first result: the value that the codec has
// written, or the error.
//
// A session belongs to a client, which has at most 4, or to a node of the group. When a
// client opens a fifth session, its session with the oldest use ends. A session also
// ends when it was not used for [Options].SessionTTL of the log's time. From then on its
// commands get [ErrSessionExpired]. No other client ends it: when [Options].Sessions are
// open, a client that opens another one loses one of its own, and a client without a
// session is refused. Sessions of nodes do not age.
//
// # Updates that fail
//
// An error from Update means that the state is unchanged. If an update changes the state
// and then returns an error, nothing undoes the change; but each replica has made it, so
// they stay equal. In tests, but not in benchmarks, and in builds with -race the
// state before is compared with the state after: with a log as the codec writes it,
// in memory by all values that its fields lead to, except fields with the tag
// `topo:"-"`. A difference ends the machine with [ErrChanged]. If the state is large,
// only some of the updates that fail are compared.
//
// A panic in Update fails the instance in memory. With a log it is undone: the state
// is made again from the encoded state of the last checkpoint, and the commands
// since, without the one that has panicked. The same holds for a Revert that returns
// an error or panics. The checkpoint moves on with each snapshot, after
// [Options].ReplayMax entries, and when the entries have twice the bytes of the
// state. So the memory that this takes is about three times the encoded state, plus
// 8 MiB; and an update that panics costs as much as decoding the state. If
// [Replicated.Checkpoint] says where a snapshot can be read again, that snapshot is the
// checkpoint, and takes no memory; a state of 64 MiB or more then has none in memory.
//
// A large state is written and read in pieces, as [Codec].Parts says, and takes little
// memory beside itself. A state that is a [Freezer] is written while updates go on.
//
// # Types
//
// A [Definition] has a description of the types that its codecs write. Each node says
// its own in the log ([Batch.Describe]). The log has the first one, and changes to a newer
// one as soon as all members know that. Until then an update with a newer field is
// refused with [ErrNotYet]. A program that has another kind for a field than the log's
// description, or lacks a field, refuses the log with [ErrIncompatible], see [Compatible].
//
// # Guarantees
//
// The same entries make the same state, sessions and snapshots on every replica,
// wherever each has made snapshots, and started from one, as long as Update and
// the codecs are deterministic and what a codec reads is what it wrote.
//
// Entries and snapshots may hold any bytes: they are applied, or refused with
// [ErrDamaged]. A Replicated allocates at most a multiple of their length for them, not
// counting the codecs. Restore is all or nothing.
//
// Apply does not allocate for an update that succeeds, once its buffers have grown, not
// counting the codec and Update.
//
// # Limits
//
// No type but Processor has a lock, and none has a goroutine or a file. An entry
// holds at most [CommandsMax] commands, and the indices of entries end at 2^44. A result
// has at most 64 KiB. Of an error 256 bytes of text are remembered. The first answer is
// the error itself. A repeated one matches [ErrPanicked], [ErrTooMany] and [ErrResult] if
// the first one did, and those errors of the definition that the first one matched.
//
// The proposer gives an entry its time, which never goes back. This
// package takes it as it is: runtime/raft gives an entry the median of the members'
// clocks if the proposer's clock is far from it.
//
// In memory the number of updates that are neither committed nor reverted is not limited.
package fsm
