package raft

import "slices"

// sizeBytesMax limits the updates that wait at the same time. Each is in memory about ten
// times, for each subject: at its caller, in the logs of three replicas, and in messages
// between them.
const sizeBytesMax = 256 << 20

// Loads combines the sizes with the numbers of callers. It reduces the number of callers
// if their updates together are more than sizeBytesMax.
func Loads(bytes, callers []int) (list []Load) {
	for _, b := range bytes {
		for _, n := range callers {
			l := Load{Callers: max(min(n, sizeBytesMax/b), 1), Bytes: b}
			if !slices.Contains(list, l) {
				list = append(list, l)
			}
		}
	}
	return list
}
