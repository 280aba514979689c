package bug

// Bugs in package supervise. Its tests detect them.
const (
	FlagSeenOnce      Bug = "flag-seen-once"      // a child that waits for its delay is started although its inputs are done
	WindowNeverEnds   Bug = "window-never-ends"   // old restarts still count
	ExponentNotCapped Bug = "exponent-not-capped" // a delay doubles more than sixteen times
	StartsTooEarly    Bug = "starts-too-early"    // the first member of a restart group starts before all members have stopped
	RestIsAll         Bug = "rest-is-all"         // the strategy rest_for_one restarts all members
	IntensityForEver  Bug = "intensity-for-ever"  // restarts outside the period count for the intensity
	RecoveryUntold    Bug = "recovery-untold"     // the recovery of a broken input is not reported
	QueueNotSeen      Bug = "queue-not-seen"      // an input breaks although it has a queued message
	BrokenIsClosed    Bug = "broken-is-closed"    // all inputs count as closed although one may recover
)

// InSupervise lists the deliberate bugs of package supervise.
var InSupervise = []Bug{
	FlagSeenOnce, WindowNeverEnds, ExponentNotCapped, StartsTooEarly, RestIsAll, IntensityForEver,
	RecoveryUntold, QueueNotSeen, BrokenIsClosed,
}
