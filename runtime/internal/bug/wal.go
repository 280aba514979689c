package bug

// Bugs in package wal. Its tests detect them.
const (
	TornAnywhere Bug = "torn-anywhere" // the last file is truncated at any damage
	MarkTooNew   Bug = "mark-too-new"  // a mark claims that records were synced that were only written
	MarksIgnored Bug = "marks-ignored" // a missing sector counts as a torn write although later marks prove damage
)

// InWAL lists the deliberate bugs of package wal.
var InWAL = []Bug{TornAnywhere, MarkTooNew, MarksIgnored}
