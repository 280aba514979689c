//go:build !unix

package regular

import "io/fs"

// noFollow is 0: the system has no such flag, so [OpenOwn] compares the opened file with the
// file of that name.
const noFollow = 0

// names returns 1: the number of names is not known.
func names(fs.FileInfo) uint64 { return 1 }
