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
)

// InCluster lists the deliberate bugs of package cluster.
var InCluster = []Bug{
	ConfirmedEarly, SecondRoundOmitted, TurnsNotCompared, StatusLost, SettledTwice, RepliesLate, DrainingSilent,
	RoomUnreported, PassedStuck, FarewellShort, ResumeForgotten, DropsNotCounted, OrderAcrossIgnored,
	CastSettledByOne,
}
