// Package hexid makes identifiers that ascend as strings.
//
// It is a stand-alone part: topogen itself does not use it.
//
// [Generator] counts in groups of 16 bits, which are written as four lowercase
// hexadecimal digits and joined by '-':
//
//	0000 0001 … ffff ffff-0000 ffff-0001 … ffff-ffff ffff-ffff-0000 …
//
// A group that has reached ffff stays, and another group follows it. The strings of one
// generator therefore sort, byte by byte, in the order in which they were made, even
// when their length changes.
//
// # Growth
//
// An identifier grows by 5 bytes every 65,536 identifiers. The millionth has 79 bytes,
// the hundred-millionth 7,629. All n identifiers together take about n²/26,000 bytes.
// Use a generator for thousands of identifiers, or for a few millions that are not
// stored.
//
// # When to use it
//
// Use it for values that must be distinguished, and sorted by creation, within one
// process: entries of a log, versions of a value. The runtime does not need it, because
// processors, instances and workers have indices, records of errtop are identified by
// their texts, and temporary files must differ from those of other processes.
//
// # Limits
//
// Identifiers are unique, and ascend, within one generator. Two generators make the
// same identifiers, and so does a process after a restart.
package hexid
