// Package bug lists the deliberate bugs of the runtime. In builds with the tag topobug,
// the environment variable TOPOGEN_BUG turns one of them on, and a test shows that the
// checks detect it. In all other builds [On] is constantly false, and the compiler
// removes the code of the bugs.
package bug

// Bug names a deliberate bug.
type Bug string

// Bugs in package piper and the packages below it.
const (
	PublishAfterHandOver Bug = "publish-after-hand-over" // the messages of a turn are published after its group was informed of its end
	LostWakeup           Bug = "lost-wakeup"             // a worker that is not parked gets no note
	FullIgnored          Bug = "full-ignored"            // a full queue does not pause its sender
	CloseEarly           Bug = "close-early"             // a group closes before its last message
	WrongHash            Bug = "wrong-hash"              // a key is mapped to another instance
	SequenceIgnored      Bug = "sequence-ignored"        // with several edges, messages are not handled in the order in which they were sent
	TickQueues           Bug = "tick-queues"             // a tick is not skipped although one is queued
	WrongCaller          Bug = "wrong-caller"            // a late reply goes to the next caller
	OldOwner             Bug = "old-owner"               // an instance that moved still has a turn on its old worker
	OldWorkerWoken       Bug = "old-worker-woken"        // a note for an instance that moved is not forwarded
	LostInstance         Bug = "lost-instance"           // the new worker is not informed of an instance that moved
	CostGrows            Bug = "cost-grows"              // the cost of an instance is never halved
	AbandonedSender      Bug = "abandoned-sender"        // a new instance gets the sender of an abandoned goroutine
	MessageLost          Bug = "message-lost"            // the message that an instance was handling when it failed is lost
	LetterTwice          Bug = "letter-twice"            // a dead letter is sent twice
	RestartPerEdge       Bug = "restart-per-edge"        // a restart is reported for each edge, not for each receiver
	StartAfterInputs     Bug = "start-after-inputs"      // an order to start is carried out although the inputs are done since then
	ClosedTooEarly       Bug = "closed-too-early"        // a closed input is reported before its last message
	HungLinkForgotten    Bug = "hung-link-forgotten"     // messages behind a message whose handler hangs are never handled
	AttemptForgotten     Bug = "attempt-forgotten"       // a group finishes while a message waits for its next attempt
	ReplyForgotten       Bug = "reply-forgotten"         // a group finishes while a reply is pending
	WakeLost             Bug = "wake-lost"               // Wake is lost if the group is full
	OutputLost           Bug = "output-lost"             // messages of an abandoned instance are not published
	OutputWaits          Bug = "output-waits"            // messages of finished calls are not published while a call takes long
	DrainWithoutRestart  Bug = "drain-without-restart"   // a stop reports for all instances that their inputs are done
	HoldForgotten        Bug = "hold-forgotten"          // a group finishes while an instance holds work
	RetryAtOnce          Bug = "retry-at-once"           // there is no delay before the next attempt
	CloseAwaited         Bug = "close-awaited"           // a restart waits for Close without a limit
	LateSendUnseen       Bug = "late-send-unseen"        // a send after the handler call of the sender is not detected
	AbandonedContext     Bug = "abandoned-context"       // the context of an abandoned call does not end
)

// Bugs in package queue. Its tests detect them.
const (
	SentinelForgotten Bug = "sentinel-forgotten" // a place that a consumer has abandoned accepts a message, which is lost
)

// InQueue lists the deliberate bugs of package queue.
var InQueue = []Bug{SentinelForgotten}

// Bugs in package errtop. Its tests detect them.
const (
	RestoreDropsNewest Bug = "restore-drops-newest" // the newest error is missing after a restart
)

// InErrtop lists the deliberate bugs of package errtop.
var InErrtop = []Bug{RestoreDropsNewest}

// All lists the deliberate bugs that the tests of package piper detect.
var All = []Bug{
	PublishAfterHandOver, LostWakeup, FullIgnored, CloseEarly, WrongHash, SequenceIgnored, TickQueues, WrongCaller,
	OldOwner, OldWorkerWoken, LostInstance, CostGrows,
	AbandonedSender, MessageLost, LetterTwice, RestartPerEdge, StartAfterInputs, ClosedTooEarly, HungLinkForgotten, AttemptForgotten,
	ReplyForgotten, WakeLost,
	OutputLost, OutputWaits, DrainWithoutRestart, HoldForgotten, RetryAtOnce, CloseAwaited, LateSendUnseen, AbandonedContext,
}

// Variable is the environment variable that turns a bug on.
const Variable = "TOPOGEN_BUG"
