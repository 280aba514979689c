package raft

import "slices"

// sizeBytesMax bounds the updates that wait at the same time. Each is in memory
// some ten times: with its caller, in the logs of three replicas and in messages
// between them, for each subject.
const sizeBytesMax = 256 << 20

// Loads are the sizes by the numbers of callers. There are fewer callers where
// sizeBytesMax is less than all of their updates together.
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
