// Package cache remembers what builds read and wrote, so that "nothing has
// changed" is decided in about a millisecond, without a child process and
// without loading a type.
//
//	b := cache.Open("").Start(cache.Identify(options))
//	if found, fresh := b.Recall(file); fresh {
//		return found.Value // what is on disk is what this build would write
//	}
//	b.Watch(cache.Inputs{…})                    // what the build is likely to read
//	…                                           // the build
//	b.Writes(outputs)
//	if path := b.Changed(inputs); path != "" {  // before the build writes, and after
//		…                                       // begin again
//	}
//	b.Record(cache.Build{Key: file, Inputs: inputs, Outputs: outputs, Value: warnings})
//
// A [Batch] serves any number of builds. It looks at a file once, however many of them
// read it. Start comes before the first input is read, Record after the last output is
// written. Record all builds of a batch together: the output of one build is an
// input of each build that imports its package.
//
// # Guarantees
//
// A build is fresh when generator, options and environment are the same, each
// folder that it has read has the same Go files, each input has the same content or is
// still absent, and each output has the content that was written. Files are
// compared by size, times and inode, and by SHA-256 where these differ or where
// the last change was so short before the comparison that a further one could
// hide behind the same time ([racyWindow]; git's index does the same). An input
// that changed after it was watched, or after Start, is not recorded, since the build
// may have seen either version, and neither is a file that was read before Start and
// has another content now.
//
// Everything in doubt is not fresh: a record that is corrupt, truncated, too
// large, of another version or of another key, a file that cannot be read. A
// cache folder that is missing or cannot be written keeps no record, and no error is
// reported. It may be deleted at any time; records are replaced by renaming, and there are at
// most [recordsMax] of them.
//
// # Limits
//
// The generator is recognized by the size, times and inode of its executable.
// A person who can write into the user's cache folder can make a build count as
// fresh, or believe that packages are others than the go command says.
package cache
