package piper

import "time"

// Supervisor decides what becomes of instances that end. supervise.Supervisor is
// one. It is a function of what it has heard so far: the pool calls it under a
// lock, does what it answers in that order, and tells it of what came of it.
type Supervisor interface {
	// Step hears of an event at a time since the beginning of the topology and
	// returns what is to be done.
	Step(now time.Duration, e ChildEvent) []ChildEffect
}

// Child is an instance as a supervisor knows it: indices of the processor and of
// the instance.
type Child struct{ Processor, Instance int }

// ChildEventKind is what happened.
type ChildEventKind uint8

const (
	ChildFailed     ChildEventKind = iota // by an error, a panic, or the death of its process; it does not run any more
	ChildHung                             // it did not answer in time; it was abandoned or killed
	ChildEnded                            // Serve returned nil, Ping said Done, its process ended with code 0; it may still handle what comes, and fail
	ChildStopped                          // as EffectStop asked
	ChildStarted                          // as EffectStart asked: it runs
	ChildNotStarted                       // its constructor or Init failed, or took too long
	ChildDue                              // the delay of an EffectWait has passed
	ChildInputsDone                       // its inputs are closed and drained, or it has none and the topology stops: it is not to be started again
)

// ChildEvent is something that happened to an instance.
type ChildEvent struct {
	Kind  ChildEventKind
	Child Child
	Err   error // of ChildFailed, ChildHung, ChildNotStarted
}

// ChildEffectKind is what is to be done.
type ChildEffectKind uint8

const (
	EffectWait   ChildEffectKind = iota // tell ChildDue after Delay; another wait of the child is forgotten
	EffectStart                         // make the child anew, which does not run: answered by ChildStarted or ChildNotStarted
	EffectStop                          // end the child, which runs, is being started, or has ended: answered by ChildStopped, or by how it ended before that
	EffectDone                          // the child has come to its end: it will send no more of itself, unless it is started with the others of its group
	EffectGiveUp                        // the child has failed for good; the rest goes on
	EffectEnd                           // the topology ends with Err
)

// ChildEffect is something that is to be done.
type ChildEffect struct {
	Kind  ChildEffectKind
	Child Child
	Delay time.Duration // of EffectWait
	Err   error         // of EffectGiveUp and EffectEnd
}
