// Package disksim simulates the disk below the files of a directory, for tests of stores.
//
// The directory is the page cache of the operating system: processes read from it what they
// wrote. A [Disk] knows what the disk below has. A write reaches it when its file is
// synced, and a name when its directory is synced. Until then a power failure can lose any
// sector of it.
//
//	d := disksim.New(dir, rng)  // everything in dir is on the disk
//	...                         // the store writes
//	d.Observe()                 // finds what has changed
//	d.Sync("promises.db")       // as the store does
//	d.Crash(after, disksim.Sectors(0.3)) // what a power failure leaves, in another directory
//
// The test tells the disk when the store syncs: it replaces the sync of the store by a function that
// calls [Disk.Sync]. So the simulation trusts that the store calls the sync of the operating
// system. Package failsync tests that.
//
// A [Machine] needs no such replacement. It sees the system calls of the code under test, also
// in libraries, and decides at each of them whether the power fails, a sync or a read fails, or
// the disk lies.
//
// # Faults
//
// A power failure loses unsynced sectors ([Disk.Crash]). [Faults] make a disk that lies: it
// acknowledges a sync and has lost one of the writes, or a part of it, or has written it to
// another place. [Disk.FailSync] is a sync that returns an error: like Linux, it keeps what
// was written in memory, and never writes it to the disk. [Disk.DropCache] drops the page cache,
// so that the next read comes from the disk.
//
// # Limits
//
// A sector of 512 bytes is written entirely or not at all. Directories of a Disk are flat. A
// Machine has one Disk for its directory and one for each subdirectory.
package disksim
