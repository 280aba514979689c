package bug

// Bugs in package fsm. Its tests detect them.
const (
	SessionsNotInSnapshot Bug = "sessions-not-in-snapshot" // the sessions are missing after a restart
	RevertUndoesCommitted Bug = "revert-undoes-committed"  // a revert goes back to the first stored update
	AppliedAfterRestart   Bug = "applied-after-restart"    // an entry that the snapshot holds is applied again
)

// InFSM lists the deliberate bugs of package fsm.
var InFSM = []Bug{SessionsNotInSnapshot, RevertUndoesCommitted, AppliedAfterRestart}
