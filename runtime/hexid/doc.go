// Package hexid makes identifiers that ascend as strings.
//
// [Generator] counts in groups of 16 bits, written as four lowercase hexadecimal
// digits and joined by '-', as in rast.md 2.14 (docs/reference/rast.md):
//
//	0000 0001 … ffff ffff-0000 ffff-0001 … ffff-ffff ffff-ffff-0000 …
//
// A group that has reached ffff stays, and another one follows it. So the strings
// of one generator sort, byte by byte, in the order in which they were made,
// across changes of the length too.
//
// # Growth
//
// That has its price: an identifier grows by 5 bytes each 65,536. The millionth
// has 79 bytes, the hundred-millionth 7,629. All of n identifiers together take
// about n²/26,000 bytes. Use one generator for thousands of identifiers, or for a
// few millions that are not kept.
//
// # Where it is of use, and where it is not
//
// For what is to be told apart and sorted by when it was made within one process:
// entries of a log, versions of a value. The runtime itself does not use it:
// processors, instances and workers have indices, records of errtop their texts,
// and temporary files must differ from those of other processes.
//
// # Limits
//
// Identifiers are unique, and ascend, within one generator. Two generators, or a
// process that is started again, make the same ones.
package hexid
