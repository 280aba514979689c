package bug

// Bugs in package session. Its tests detect them.
const (
	WindowIgnored    Bug = "window-ignored"     // frames are sent although the window is full
	FrameAgain       Bug = "frame-again"        // a frame that arrives a second time is handled again
	GapSkipped       Bug = "gap-skipped"        // a frame after a missing one is handled at once
	OldIncarnation   Bug = "old-incarnation"    // the boot ids of data frames are not compared
	HelloNotProven   Bug = "hello-not-proven"   // a late hello of a former incarnation is accepted
	QueueKept        Bug = "queue-kept"         // messages for a former incarnation go to the new one
	SlotsKept        Bug = "slots-kept"         // lanes are not announced to a new incarnation
	LastFrameLost    Bug = "last-frame-lost"    // no frame is sent again after a timeout
	FragmentsMixed   Bug = "fragments-mixed"    // a message is begun although the receiver has no room for its fragments
	LargeFirst       Bug = "large-first"        // a large message is sent completely before other lanes get a turn
	AcksTooLate      Bug = "acks-too-late"      // a gap is not reported at once
	TwoProcessesMute Bug = "two-processes-mute" // a former incarnation that returns is accepted again
)

// InSession lists the deliberate bugs of package session.
var InSession = []Bug{
	WindowIgnored, FrameAgain, GapSkipped, OldIncarnation, HelloNotProven, QueueKept, SlotsKept, LastFrameLost,
	FragmentsMixed, LargeFirst, AcksTooLate, TwoProcessesMute,
}
