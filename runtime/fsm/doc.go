// Package fsm is a replicated state machine: a state that changes only through updates.
//
// A user writes the state and an update of it. The update may return a value:
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
// A [Definition] names the parts of a state machine. Three types apply updates. [Machine]
// keeps a list of updates and the borders between applied, committed and new ones.
// [Processor] runs a Machine as a processor of a topology: it is `kind: fsm` without a
// log. [Replicated] applies the entries of a log, on one disk or on several nodes. The
// log is in runtime/raft. A [Batch] builds the data of an entry.
//
// # Machine
//
// Updates are added, applied in order, and committed. An update that is both applied and
// committed is forgotten. Updates that are not committed can be reverted, newest first.
// An update that fails remains the next one to apply. Adding an update does not commit
// it. Reverting stops at the last committed update and drops the updates that it undoes.
//
// # Proposals
//
// A proposal is an update with an answer, [Result]. It is applied after all earlier
// updates and committed together with them, and the answer holds the value that Update
// returned. If the proposal fails, nothing changes and the answer holds the error.
// [OutcomeKnown] reports whether an error says if the update was applied.
//
// # Exactly once
//
// With a log, each command has a session, a sequence number in this session, and a floor:
// the lowest sequence whose result the client still waits for. A [Replicated] applies
// each (session, sequence) once, however often the log contains it, also after restarts.
// It answers a repeated command with the first result: the encoded value, or the error.
//
// A session belongs to a client or to a node of the group. A client has at most 4
// sessions. When it opens a fifth one, its least recently used session ends. A session
// also ends when it was not used for [Options].SessionTTL, measured by the time of the
// log's entries. Commands of an ended session get [ErrSessionExpired]. A client never
// ends the session of another client: when [Options].Sessions are open, a client that
// opens another session loses one of its own, and a client without a session is refused.
// Sessions of nodes do not expire.
//
// # Updates that fail
//
// An error from Update means that the state is unchanged. If an update changes the state
// and then returns an error, the change is not undone. All replicas make the same change,
// so they remain equal. Tests and builds with -race, but not benchmarks, compare the
// state before the update with the state after it. With a log they compare the encoded
// states. In memory they compare all values that can be reached from the state, except
// fields with the tag `topo:"-"`. A difference stops the state machine with [ErrChanged].
// If the state is large, only some of the failed updates are checked.
//
// In the same tests and builds, a Replicated also applies an update to a copy of the state
// that was encoded and decoded, like the state of a replica that started from a snapshot. If
// the encodings of the two states differ after the update, the error matches [ErrDiverged].
// The reason is that Update depends on what the codec does not keep: that two pointers or
// maps are the same, that a list is empty and not nil, or the value that a pointer to an
// earlier update points to.
//
// In memory, a panic in Update fails the instance. With a log, the update is undone: the
// state is rebuilt from the encoded state of the last checkpoint and the commands since
// then, without the command that panicked. A Revert that returns an error or panics is
// undone in the same way. A new checkpoint is made with each snapshot, after
// [Options].ReplayMax entries, and when the entries have twice the bytes of the state. So
// the memory for this is about three times the encoded state, plus 8 MiB. An update that
// panics costs as much time as decoding the state. If [Replicated.Checkpoint] provides a
// snapshot that can be read again, this snapshot is the checkpoint and takes no memory.
// Then a state of 64 MiB or more has no checkpoint in memory.
//
// A large state is written and read in chunks, see [Codec].Parts, and this takes little
// memory in addition to the state. If the state is a [Freezer], updates go on while it is
// written.
//
// # Types
//
// A [Definition] has a description of the types that its codecs write. Each node writes
// its own description to the log ([Batch.Describe]). The first one becomes the log's
// description. A newer one replaces it when the programs of all members know it. Until
// then an update that uses a newer field is refused with [ErrNotYet]. A program that
// lacks a field of the log's description, or declares it with another kind, refuses the
// log with [ErrIncompatible], see [Compatible].
//
// # Guarantees
//
// The same entries make the same state, sessions and snapshots on every replica. It does
// not matter when a replica made snapshots or started from one. This requires that
// Update and the codecs are deterministic, that a codec reads what it wrote, and that
// Update depends on nothing that the codec of the state does not keep.
//
// Entries and snapshots may hold any bytes: they are applied, or refused with
// [ErrDamaged]. A Replicated allocates at most a multiple of their length, not counting
// the codecs. Restore succeeds completely or changes nothing.
//
// Apply does not allocate for an update that succeeds, once its buffers have grown, not
// counting the codec and Update.
//
// # Limits
//
// Only Processor has a lock. No type has a goroutine or a file. An entry holds at most
// [CommandsMax] commands, and the index of an entry is below 2^44. A result has at most
// 64 KiB. Of an error text, 256 bytes are remembered. The first answer holds the error
// itself. A repeated answer matches [ErrPanicked], [ErrTooMany], [ErrResult] and the
// errors of the definition if the first one did.
//
// The proposer sets the time of an entry. The time of the log never goes back. This
// package does not check the time of an entry: runtime/raft replaces it with the median
// of the members' clocks if the proposer's clock is far from that.
//
// In memory the number of updates that are neither committed nor reverted is unlimited.
package fsm
