package bug

// Bugs in package member. Its tests detect them.
const (
	NoHelpersNoSuspicion Bug = "no-helpers-no-suspicion" // without helpers a member stays probe-failed for ever
	DeadForEver          Bug = "dead-for-ever"           // a claim with a higher incarnation does not bring a dead member back
	PauseBlamesOthers    Bug = "pause-blames-others"     // a process that did not run lets its timeouts expire
	HelperTooLate        Bug = "helper-too-late"         // a helper answers when its requester has given up
	DeafCountsAsAlive    Bug = "deaf-counts-as-alive"    // messages of a node that hears nothing are signs of life
	HalfIsMajority       Bug = "half-is-majority"        // half of the members count as a majority
	MinorityForgets      Bug = "minority-forgets"        // a node that reaches no majority forgets the dead
	AgeForgotten         Bug = "age-forgotten"           // a claim about a dead member does not carry its age
	NoSweep              Bug = "no-sweep"                // a node that is alone finds one unreachable member per interval
	OldBootAccepted      Bug = "old-boot-accepted"       // messages of a replaced process are handled
)

// InMember lists the deliberate bugs of package member.
var InMember = []Bug{
	NoHelpersNoSuspicion, DeadForEver, PauseBlamesOthers, HelperTooLate, DeafCountsAsAlive,
	HalfIsMajority, MinorityForgets, AgeForgotten, NoSweep, OldBootAccepted,
}
