package bug

// Those of package wal, whose tests catch them.
const (
	TornAnywhere Bug = "torn-anywhere" // whatever is wrong in the last file is cut off, with all behind it
)

// InWAL lists the deliberate bugs of package wal.
var InWAL = []Bug{TornAnywhere}
