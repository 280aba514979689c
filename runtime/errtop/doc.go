// Package errtop counts the errors and panics of a program by their text. An error
// that occurs a million times is one record with a count, and does not hide a rare
// error.
//
//	keeper, err := errtop.Open(errtop.Settings{Path: "/var/lib/shop/errors.pb"})
//	…
//	defer keeper.Close()
//	err = keeper.Catch(0, "import", func() error { return importAll(ctx) })
//
// [New] and [Wrap] make errors that carry the stack of their caller. The zero [Keeper]
// is ready to use and keeps its records in memory only; [Open] makes a keeper with a
// file. `topoctl errors FILE` prints a file, and [Read] reads it.
//
// # What is a record
//
// The text of a record consists of the place of the failure, the reason and the stack. Parts that
// differ between two occurrences of the same fault are removed: addresses, numbers of
// goroutines, arguments of functions, and the frames of the pool below a handler.
// Occurrences with equal texts are one record. The stack of a panic is the one at which
// it was raised. The stack of an error is the one at which [New] or [Wrap] made it; other
// errors have no stack. If the reason contains an ID, each occurrence is a new record.
// Put such values into a log, not into the error.
//
// # Which records stay
//
// A keeper has at most Settings.Top records, 1000 by default. When a new record exceeds
// this number, the keeper removes a record. The most frequent seven eighths of the records
// stay. Of the other eighth, the keeper removes the record that was not seen for the
// longest time. So a new record, whose count is 1, is never removed at once. It stays if
// its error occurs again before Top/8 other new records. Its count then grows until it is
// among the frequent records. Errors that occur only once use at most an eighth of the
// places, and never displace a frequent error.
//
// Two simpler rules have faults. If the least frequent record were removed, a full keeper
// would remove each new record at once. If a new record inherited the count of the record
// that it replaces, as in the space-saving algorithm, counts would be too high. Here a
// count is exact since its record was created. When the records are read, the counts of all
// workers are added first, and records are removed after that. So no record is removed
// while there is room, or between the counts of two workers.
//
// A record that was not seen for Settings.Keep, ten minutes by default, is removed.
//
// # Workers
//
// [Keeper.Record] writes to a table of the calling worker, so that workers do not contend
// for a lock. The tables are merged when the records are read. Stacks are converted to text
// only then. [Keeper.Top] returns everything that was recorded before it was called.
//
// # The file
//
// The file is the protobuf message of exceptiontop.proto, with times in microseconds since
// 1970. A goroutine of the keeper writes it at most once per Settings.DumpEvery, and Close
// writes it too. The data goes to a temporary file in the same folder, which is synced and
// renamed, and then the folder is synced. A reader therefore finds the old file or the new
// one, also after a power failure. The default period is 1 s, because a sync takes longer
// than 1 ms on many disks and wears them out. A dump that fails is tried again in each
// period; only the first failure of a series is logged.
//
// If the path is a symbolic link, Open resolves it once. The keeper then writes the file
// to which the link points, in the folder of that file, and the link stays.
//
// If a process is killed, the records since the last dump are lost. The file is not
// written while there is nothing new, so the last errors stay in the file. Only one keeper
// may use a file.
//
// Open starts with the records in the file. A file that is not in this format, or is too
// large, is renamed to FILE.broken, FILE.broken2 and so on, with a warning, and the keeper
// starts empty.
//
// # Limits
//
// A text has at most 8 KiB, its reason 2 KiB and its stack 32 frames; a text that was cut
// ends with "…". Top is at most 4096. A file therefore has at most 4096 records and
// 67,371,008 bytes. [Read] and Open reject a file with more records or a longer text,
// which another program must have written. Reading uses no more memory than the records
// that it returns. A keeper uses at most about 8 KiB for each of Top records, and 20 MiB
// for records that are not merged yet.
package errtop
