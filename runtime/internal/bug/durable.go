package bug

// Bugs in package durable/core. Its tests and the differential test against the oracle
// detect them.
const (
	VersionAtRelease   Bug = "version-at-release"   // the version of a task grows when its lease ends, not only when it begins
	LeaseKept          Bug = "lease-kept"           // a suspended task keeps its lease, which ends later
	DeadAwaiterResumed Bug = "dead-awaiter-resumed" // a task is resumed although its own deadline has passed
	TimeoutsOneByOne   Bug = "timeouts-one-by-one"  // awaiters are resumed before all expired promises are settled
	HeartbeatAnyPID    Bug = "heartbeat-any-pid"    // a heartbeat extends the lease of another process
	FenceAnyVersion    Bug = "fence-any-version"    // a fence accepts a worker whose lease has ended
	CallbacksKept      Bug = "callbacks-kept"       // the callbacks of a settled promise are not deleted
	HaltUnprojected    Bug = "halt-unprojected"     // a task can be halted after the deadline of its promise
)

// InDurableCore lists the deliberate bugs of package durable/core.
var InDurableCore = []Bug{
	VersionAtRelease, LeaseKept, DeadAwaiterResumed, TimeoutsOneByOne, HeartbeatAnyPID, FenceAnyVersion, CallbacksKept, HaltUnprojected,
}
