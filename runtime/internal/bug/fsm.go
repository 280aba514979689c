package bug

// Those of package fsm, whose tests catch them.
const (
	SessionsNotInSnapshot Bug = "sessions-not-in-snapshot" // who applied what is forgotten by a restart
	RevertUndoesCommitted Bug = "revert-undoes-committed"  // a revert goes back to the first update that is there
	AppliedAfterRestart   Bug = "applied-after-restart"    // an entry that the snapshot holds is applied again
)

// InFSM lists the deliberate bugs of package fsm.
var InFSM = []Bug{SessionsNotInSnapshot, RevertUndoesCommitted, AppliedAfterRestart}
