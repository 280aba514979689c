// Package errtop keeps the errors and panics of a program by how often they
// occur: an error that occurs a million times is one record with a count, and
// the rare one beside it is still seen.
//
//	keeper, err := errtop.Open(errtop.Settings{Path: "/var/lib/shop/errors.pb"})
//	…
//	defer keeper.Close()
//	err = keeper.Catch(0, "import", func() error { return importAll(ctx) })
//
// [New] and [Wrap] make errors that carry the stack of where they were made. The
// zero [Keeper] is ready to use and keeps what it hears in memory alone; [Open]
// makes one that has a file. `topoctl errors FILE` prints a file, [Read] reads it.
//
// # What is a record
//
// The text of a record is what failed, the reason and the stack, without what
// differs between two occurrences of one fault: addresses, numbers of goroutines,
// arguments of functions, and the frames of the pool below a handler. Equal texts
// are one record. Of a panic the stack is where it was raised, of an error where
// [New] or [Wrap] made it; another error has none. A reason that holds an id is
// another text each time, and takes a newcomer's place; put what varies into a
// log, not into the error.
//
// # Which records stay
//
// At most Settings.Top records are kept, 1000 by default. When there is one more,
// the most frequent seven eighths stay, and of the others the one goes that was
// not seen for longest. So a new error, which has occurred once, is never the one
// to go; it stays if it comes back before an eighth of Top others are new, and
// gathers the count that lifts it over older ones. And however many errors occur
// once, they take an eighth of the places, and no frequent one goes for them. (To
// remove the least frequent, as rast.md 2.11 does, removes each newcomer at once
// when the top is full; to let a newcomer inherit the count of whom it replaces,
// as the space-saving algorithm does, prints counts that are not true.) A count is
// exact from the moment since which the record has been kept. When somebody reads,
// all that the workers have recorded is added first, and only then anything goes:
// nothing while there is room, and no newcomer between what one worker counted of
// it and what another did.
//
// The package is modelled on rast.md; docs/reference/rast.md says what that is.
//
// A record that was not seen for Settings.Keep, ten minutes by default, goes.
//
// # Workers
//
// [Keeper.Record] takes the place of the worker that calls it, so that workers do
// not contend; those places are merged when somebody reads, and stacks are turned
// into text then. [Keeper.Top] has everything that was recorded before it was
// called.
//
// # The file
//
// The file is the protobuf message of exceptiontop.proto, times in microseconds
// since 1970. It is written by a goroutine of the keeper's, at most once each
// Settings.DumpEvery and on Close, under another name in the same folder, synced
// and renamed, and the folder is synced: a reader finds the old file or the new
// one, also after a power failure. (rast.md asks for 1 ms. The default is
// 1 s: a sync takes longer than 1 ms on many disks, and wears them out.) A dump
// that fails is tried again each period; the first of a series is logged.
//
// Where the path is a symbolic link, Open follows it, once, and the file that it
// leads to is the one that is written, in that one's folder; the link stays.
//
// A process that is killed loses what it recorded since the last dump. While
// nothing new is recorded nothing is written, so the last errors before a silence
// stay in the file, however long that is. Only one keeper may have a file.
//
// Open begins with what the file holds. A file that is not in this format, or too
// large, is renamed to FILE.broken, FILE.broken2 and so on, with a warning, and
// the keeper begins with nothing.
//
// # Limits
//
// A text has at most 8 KiB, its reason 2 KiB, its stack 32 frames; what is cut
// ends with "…". Top is at most 4096. So a file has at most 4096 records, and
// 67,371,008 bytes; one with more, or with a longer text, was written by somebody
// else, and neither [Read] nor Open takes it. Reading takes no more memory than
// the records that it returns. All in all a keeper takes at most about
// 8 KiB for each of Top records, and 20 MiB for what is not merged yet.
package errtop
