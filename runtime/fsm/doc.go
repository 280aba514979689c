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
// A [Definition] says what a machine is made of. Three types apply updates. [Machine] is a list of updates with its borders.
// [Processor] is a Machine as a processor of a topology, which is what `kind: fsm`
// is in memory. [Replicated] is what the entries of a log are applied to, on one
// disk or on several machines: runtime/raft has the log. An entry is built by a
// [Batch].
//
// # Machine
//
// Updates are added, applied in order, committed, and forgotten when they are both
// applied and committed. What is not committed can be reverted, newest first. An
// update that fails stays the next to be applied. So far rast.md; in these it is
// mended: adding does not commit, reverting stops at the committed border and drops
// what it undoes, and nothing is forgotten before it was applied.
//
// # Proposals
//
// A proposal is an update with an answer, [Result]: it is applied behind all that
// came before it and committed with these, and the answer holds what Update has
// returned, or it has changed nothing and the answer holds the error. What the error
// tells about that, [OutcomeKnown] says.
//
// # Exactly once
//
// With a log, each command has a session, a number in the session's sequence, and the
// floor below which its client waits for no result. A [Replicated] applies each
// (session, sequence) once, over restarts and however often it is in the log, and
// answers the others with the result of the first: with the value that its codec has
// written, or with the error.
//
// A session belongs to a client, which has at most 4, or to a node of the group. That
// of a client ends when the client opens a fifth one, or has not used it for
// [Options].SessionTTL of the log's time; its commands get [ErrSessionExpired] from
// then on. No other client ends it: where there are [Options].Sessions, another one
// takes the place of one of the same client, and a client that has none is refused.
// Sessions of nodes do not age.
//
// # Updates that fail
//
// An error from Update means that the state is unchanged. Nothing undoes what an
// update has changed before it returned an error; but it did so on each replica, so
// that they stay equal. In tests, but for benchmarks, and in builds with -race the
// state before is compared with the state after: with a log as the codec writes it,
// in memory by all that its fields lead to, except those with the tag `topo:"-"`. A
// difference ends the machine with [ErrChanged]. Of a large state not every update
// that fails is looked at.
//
// A panic in Update fails the instance in memory. With a log it is undone: the state
// is made again from the encoded state of the last checkpoint, and the commands
// since, without the one that has panicked. The same holds for a Revert that returns
// an error or panics. The checkpoint moves on with each snapshot, after
// [Options].ReplayMax entries, and when the entries have twice the bytes of the
// state. So the memory that this takes is about three times the encoded state, and
// 8 MiB; and an update that panics costs as much as decoding the state. Where
// [Replicated.Checkpoint] says where a snapshot can be read again, that is the
// checkpoint, and takes no memory; a state of 64 MiB or more has none in memory then.
//
// A large state is written and read in pieces, as [Codec].Parts says, and takes little
// memory beside itself. A state that is a [Freezer] is written while updates go on.
//
// # Types
//
// A [Definition] has a description of the types that its codecs write. A log
// remembers the one of the newest program ([Batch.Describe]), and a program that has
// another kind for a field, or lacks one, refuses it with [ErrIncompatible], see
// [Compatible].
//
// # Guarantees
//
// The same entries make the same state, sessions and snapshots on every replica,
// wherever each has made snapshots, and started from one, as long as Update and
// the codecs are deterministic and what a codec reads is what it wrote.
//
// Entries and snapshots may hold anything: they are refused with [ErrDamaged], or
// applied. What they make a Replicated allocate is a multiple of their length,
// beside what the codecs do. Restore is all or nothing.
//
// Apply allocates nothing for an update that succeeds, when what it uses has grown,
// beside what the codec and Update do.
//
// # Limits
//
// None of this has a lock, but for Processor; no goroutine and no file. An entry
// holds [CommandsMax] commands, and the indices of entries end at 2^44. A result has
// 64 KiB. Of an error 256 bytes of text are remembered: the first answer is the error
// itself, a repeated one matches [ErrPanicked], [ErrTooMany] and [ErrResult], and
// those errors of the definition that the first one matched.
//
// Time goes with the proposers' clocks and never back: a clock that is far ahead
// holds it until the others have come up.
//
// In memory, what is neither committed nor reverted is bounded by nothing.
package fsm
