package bug

// Bugs in package cluster and in the part of package piper that passes messages between
// nodes. The simulation of clusters detects them.
const (
	ConfirmedEarly     Bug = "confirmed-early"      // messages are confirmed when they arrive, before they are handled
	SecondRoundOmitted Bug = "second-round-omitted" // a group goes on after all nodes have said once that it is quiet
	TurnsNotCompared   Bug = "turns-not-compared"   // the turns between the two rounds are ignored
	StatusLost         Bug = "status-lost"          // a new coordinator does not learn which groups are quiet
	SettledTwice       Bug = "settled-twice"        // a confirmation is counted twice
	RepliesLate        Bug = "replies-late"         // a reply is sent after the confirmation of its message
	DrainingSilent     Bug = "draining-silent"      // a node that drains does not say so
	RoomUnreported     Bug = "room-unreported"      // a sender is not informed that another node has made room in a queue
	PassedStuck        Bug = "passed-stuck"         // messages that had to wait until others were settled are not passed on
	FarewellShort      Bug = "farewell-short"       // a coordinator does not wait until all nodes know that a group may go on
	ResumeForgotten    Bug = "resume-forgotten"     // messages that wait for a node are not sent when it can be reached again
	DropsNotCounted    Bug = "drops-not-counted"    // messages that have waited too long count as handled
	OrderAcrossIgnored Bug = "order-across-ignored" // messages of several edges are passed on out of order
	CastSettledByOne   Bug = "cast-settled-by-one"  // a message to all nodes counts as handled when one node has handled it
	CastShared         Bug = "cast-shared"          // the pairs of a message to all nodes use one buffer, which is used again
	ResentReversed     Bug = "resent-reversed"      // messages that have waited are sent in the wrong order
	SettledShort       Bug = "settled-short"        // of several messages that are confirmed at once, one is not counted
	ConfirmLost        Bug = "confirm-lost"         // a confirmation is lost if the session is full
	ExpiredSilently    Bug = "expired-silently"     // messages that have waited too long are removed, and neither counted nor are their calls completed
	ExpiryUnscheduled  Bug = "expiry-unscheduled"   // messages that the session has do not expire if nothing else happens
	DoubtsIgnored      Bug = "doubts-ignored"       // a group finishes while messages that count as dropped are on their way
	ReturnForgotten    Bug = "return-forgotten"     // the messages of a returned pair are not sent to another node
	BusyIgnored        Bug = "busy-ignored"         // a node that is not quiet in the second round counts as quiet
)

// InCluster lists the deliberate bugs of package cluster.
var InCluster = []Bug{
	ConfirmedEarly, SecondRoundOmitted, TurnsNotCompared, StatusLost, SettledTwice, RepliesLate, DrainingSilent,
	RoomUnreported, PassedStuck, FarewellShort, ResumeForgotten, DropsNotCounted, OrderAcrossIgnored,
	CastSettledByOne, CastShared, ResentReversed, SettledShort, ConfirmLost, ExpiredSilently,
	ExpiryUnscheduled, DoubtsIgnored, BusyIgnored, ReturnForgotten,
}
