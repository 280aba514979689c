package fsm

// Entry is the position of an update in the log, for [Definition].UpdateAt.
type Entry struct {
	Index    uint64 // of the log's entry; in memory the number of the update
	Position int    // of the update in the entry, from 0
	Term     uint64 // of the leader that added the log's entry; 0 in memory
	Time     int64  // Unix nanoseconds, by the proposer's wall clock or, if that is far off, the median of the members' clocks; never less than for the update before
}

// Proposal asks a state machine to apply and commit an update, and to answer with an
// [Outcome].
type Proposal[U any] struct {
	Proposer int // instance of the controller that gets the outcome
	Update   U
}

// Outcome answers a [Proposal].
type Outcome[U, R any] struct {
	Proposer int
	Update   U // as proposed; in memory it shares what it points to with the state and must not be changed
	Value    R // the value that Update returned; zero if Err is not nil
	Applied
}

// Result is the result of an update and the value that it returned.
type Result[R any] struct {
	Value R // zero if Err is not nil
	Applied
}

// Applied is the result of a command.
type Applied struct {
	Index  uint64 // of the log's entry; in memory the update's number, 0 if it failed
	Term   uint64 // of the log's entry; 0 in memory
	Client uint64 // the number of the session that the command opened
	Data   string // with a log: the value that Update returned, encoded
	Err    error  // nil: applied; otherwise nothing has changed
}

// Updates adds updates to a state machine, which applies them and commits them when
// [Commit] comes.
type Updates[U any] struct{ Updates []U }

// Commit commits all updates that a state machine has received, applied or not.
type Commit struct{}

// GetUpcoming asks a state machine for the updates that are not committed. The answer
// is an [Upcoming].
type GetUpcoming struct{ Proposer int } // instance of the controller that gets the answer

// Revert drops all updates that are not committed, and undoes the applied ones, newest
// first.
type Revert struct{}

// Upcoming answers [GetUpcoming]: the updates that are not committed, oldest first.
// They are copies, made by the update's method Clone if it has one. Otherwise what they
// point to is shared with the state machine and must not be changed.
type Upcoming[U any] struct {
	Proposer int
	Updates  []U
}
