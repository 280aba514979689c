// Package bug holds the deliberate bugs of the runtime: in builds with the tag
// topobug, the environment variable TOPOGEN_BUG turns one of them on, and a test
// shows that the checks catch it. In all other builds [On] is constantly false
// and its sites inline to nothing.
package bug

// Bug names a deliberate bug.
type Bug string

// The deliberate bugs.
const (
	PublishAfterHandOver Bug = "publish-after-hand-over" // a turn's messages become visible when its end was told
	LostWakeup           Bug = "lost-wakeup"             // a worker that is awake is taken to look by itself
	FullIgnored          Bug = "full-ignored"            // a full queue pauses nobody
	CloseEarly           Bug = "close-early"             // a group closes before its last message
	WrongHash            Bug = "wrong-hash"              // a key goes to another instance
	SequenceIgnored      Bug = "sequence-ignored"        // several edges of a pair: any first message will do
	TickQueues           Bug = "tick-queues"             // a tick that comes while one waits is not skipped
	WrongCaller          Bug = "wrong-caller"            // a late answer goes to whoever asks next
	OldOwner             Bug = "old-owner"               // an instance that moved still has a turn where it was
	OldWorkerWoken       Bug = "old-worker-woken"        // a note for an instance that moved ends where it was
	LostInstance         Bug = "lost-instance"           // an instance that moved is told to nobody
	CostGrows            Bug = "cost-grows"              // what an instance has cost is never forgotten
	AbandonedSender      Bug = "abandoned-sender"        // a new instance gets the sender that an abandoned goroutine has
	HandLost             Bug = "hand-lost"               // the message that an instance fails with is gone
	LetterTwice          Bug = "letter-twice"            // a dead letter is sent twice
	ToldForEachEdge      Bug = "told-for-each-edge"      // a restart is told for each edge, not for each receiver
	StartAfterInputs     Bug = "start-after-inputs"      // an order to start is obeyed though the inputs are done since
	ClosedTooEarly       Bug = "closed-too-early"        // that an input is closed is told before its last message
	HungLinkForgotten    Bug = "hung-link-forgotten"     // what waits behind a message that a handler hangs in is not looked at again
	AttemptForgotten     Bug = "attempt-forgotten"       // a group finishes while a message waits for its next attempt
	OwedForgotten        Bug = "owed-forgotten"          // a group finishes while an instance owes an answer
	WakeLost             Bug = "wake-lost"               // who is woken while its group is full is not told of room
	OutputLost           Bug = "output-lost"             // what an abandoned instance has sent is not published
	OutputWaits          Bug = "output-waits"            // the output of finished calls waits for a call that takes long
	DrainWithoutRestart  Bug = "drain-without-restart"   // a stop says of all instances that they have nothing left to do
	HoldForgotten        Bug = "hold-forgotten"          // a group finishes while an instance holds work
	RetryAtOnce          Bug = "retry-at-once"           // a message does not wait before its next attempt
	CloseAwaited         Bug = "close-awaited"           // a restart waits for Close, however long that takes
	LateSendUnseen       Bug = "late-send-unseen"        // a send after the call that the sender was for is not noticed
	AbandonedUntold      Bug = "abandoned-untold"        // the context of an abandoned call does not end
)

// Those of package queue, whose tests catch them.
const (
	SentinelForgotten Bug = "sentinel-forgotten" // a place that a consumer has given up takes a message that nobody will look for
)

// InQueue lists the deliberate bugs of package queue.
var InQueue = []Bug{SentinelForgotten}

// Those of package errtop, whose tests catch them.
const (
	RestoreDropsNewest Bug = "restore-drops-newest" // the error that was seen last is not there after a restart
)

// InErrtop lists the deliberate bugs of package errtop.
var InErrtop = []Bug{RestoreDropsNewest}

// All lists the deliberate bugs that the tests of package piper catch.
var All = []Bug{
	PublishAfterHandOver, LostWakeup, FullIgnored, CloseEarly, WrongHash, SequenceIgnored, TickQueues, WrongCaller,
	OldOwner, OldWorkerWoken, LostInstance, CostGrows,
	AbandonedSender, HandLost, LetterTwice, ToldForEachEdge, StartAfterInputs, ClosedTooEarly, HungLinkForgotten, AttemptForgotten,
	OwedForgotten, WakeLost,
	OutputLost, OutputWaits, DrainWithoutRestart, HoldForgotten, RetryAtOnce, CloseAwaited, LateSendUnseen, AbandonedUntold,
}

// Variable is the environment variable that turns a bug on.
const Variable = "TOPOGEN_BUG"
