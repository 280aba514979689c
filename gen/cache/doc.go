// Package cache records which files builds read and wrote. With a record, a build finds in
// about a millisecond that nothing has changed, without a child process and without
// loading types.
//
//	b := cache.Open("").Start(cache.Identify(options))
//	if found, fresh := b.Recall(file); fresh {
//		return found.Value // the outputs on disk are up to date
//	}
//	b.Watch(cache.Inputs{…})                    // files that the build will probably read
//	…                                           // the build
//	b.Writes(outputs)
//	if path := b.Changed(inputs); path != "" {  // before the build writes, and after
//		…                                       // begin again
//	}
//	b.Record(cache.Build{Key: file, Inputs: inputs, Outputs: outputs, Value: warnings})
//
// A [Batch] serves any number of builds. It examines each file once, even if several builds
// read it. Call Start before the first input is read, and Record after the last output is
// written. Record all builds of a batch together, because the output of one build is an
// input of each build that imports its package.
//
// # Guarantees
//
// A build is fresh if generator, options and environment are the same, each folder that it
// has read has the same Go files, each input has the same contents or is still absent, and
// each output has the contents that were written. Files are compared by size, times and
// inode. They are compared by SHA-256 if these differ, or if the file changed so shortly
// before the comparison that a second change could have the same time ([racyWindow]; git's
// index does the same). A build is not recorded if an input changed after it was watched or
// after Start, because the build may have read either version. It is not recorded either if
// a file that was read before Start has different contents now.
//
// In case of doubt a build is not fresh: if a record is corrupt, truncated, too large, of
// another version or of another key, or if a file cannot be read. If the cache folder is
// missing or cannot be written, nothing is recorded and no error is reported. The folder may
// be deleted at any time. Records are replaced by renaming, and there are at most
// [recordsMax] of them.
//
// # Limits
//
// The generator is recognized by the size, times and inode of its executable.
// A person who can write into the user's cache folder can make a build count as fresh, or
// give it wrong answers about packages.
package cache
