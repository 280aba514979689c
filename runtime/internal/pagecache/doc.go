// Package pagecache removes files from the memory of the operating system, so that the next
// read returns what is on the disk.
//
// After a write to the disk has failed, Linux keeps the data in memory and counts it as
// written. A process that opens the file later reads the data, and no sync writes it. It is
// gone when the system needs the memory. See "PostgreSQL's fsync() surprise",
// https://lwn.net/Articles/752063/.
package pagecache
