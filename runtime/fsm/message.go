package fsm

// Entry says where an update stands in the log, for [Definition].UpdateAt.
type Entry struct {
	Index    uint64 // of the log's entry; in memory the update's own number
	Position int    // of the update in the entry, from 0
	Time     int64  // the proposer's wall clock in Unix nanoseconds, or the median of the members' where that is far from it; never less than that of the update before
}

// Proposal asks a machine to apply and commit an update, and for its [Outcome].
type Proposal[U any] struct {
	Proposer int // instance of the controller, to which the outcome goes
	Update   U
}

// Outcome answers a [Proposal].
type Outcome[U, R any] struct {
	Proposer int
	Update   U // as it was proposed
	Value    R // what Update has returned; zero where Err is not nil
	Applied
}

// Result is what became of an update, and what it has returned.
type Result[R any] struct {
	Value R // zero where Err is not nil
	Applied
}

// Applied is what became of a command.
type Applied struct {
	Index  uint64 // of the log's entry; in memory the update's number, 0 where it failed
	Term   uint64 // of the log's entry; 0 in memory
	Client uint64 // of a session that was opened: the client's number
	Data   string // with a log: what Update has returned, as its codec has written it
	Err    error  // nil: applied; else nothing has changed
}

// Updates adds updates to a machine, which applies them and commits them when
// [Commit] comes: FSMUpdatesMessage of rast.md 2.15.
type Updates[U any] struct{ Updates []U }

// Commit commits all updates that a machine has got, applied yet or not:
// FSMCommitMessage.
type Commit struct{}

// GetUpcoming asks a machine for the updates that are not committed:
// GetFSMUpcomingUpdateMessage. The answer is an [Upcoming].
type GetUpcoming struct{ Proposer int } // instance of the controller, to which the answer goes

// Revert drops all updates that are not committed, and undoes those that were
// applied, newest first: FSMUpcomingRevertMessage.
type Revert struct{}

// Upcoming answers [GetUpcoming], oldest first. The updates are copies, made by
// the update's method Clone where it has one; else what they point to is shared
// with the machine and only to be read.
type Upcoming[U any] struct {
	Proposer int
	Updates  []U
}
