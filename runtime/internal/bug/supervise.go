package bug

// Those of package supervise, whose tests catch them.
const (
	FlagSeenOnce      Bug = "flag-seen-once"      // a child that waits for its delay is started though its inputs are done
	WindowNeverEnds   Bug = "window-never-ends"   // restarts are never forgotten
	ExponentNotCapped Bug = "exponent-not-capped" // a delay doubles more than sixteen times
	StartsTooEarly    Bug = "starts-too-early"    // the first of a group starts before all have stopped
	RestIsAll         Bug = "rest-is-all"         // a rest for one restarts all
	IntensityForEver  Bug = "intensity-for-ever"  // a restart that was long ago counts for the intensity
	RecoveryUntold    Bug = "recovery-untold"     // a broken input that opens again does not say so
	QueueNotSeen      Bug = "queue-not-seen"      // an input breaks though a message waits
	BrokenIsClosed    Bug = "broken-is-closed"    // all inputs count as closed though one may recover
)

// InSupervise lists the deliberate bugs of package supervise.
var InSupervise = []Bug{
	FlagSeenOnce, WindowNeverEnds, ExponentNotCapped, StartsTooEarly, RestIsAll, IntensityForEver,
	RecoveryUntold, QueueNotSeen, BrokenIsClosed,
}
