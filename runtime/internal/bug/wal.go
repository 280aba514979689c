package bug

// Those of package wal, whose tests catch them.
const (
	TornAnywhere Bug = "torn-anywhere" // whatever is wrong in the last file is cut off, with all behind it
	MarkTooNew   Bug = "mark-too-new"  // a mark says of records that were written that they were synced
	MarksIgnored Bug = "marks-ignored" // a missing sector is a torn write, whatever the marks behind it say
)

// InWAL lists the deliberate bugs of package wal.
var InWAL = []Bug{TornAnywhere, MarkTooNew, MarksIgnored}
