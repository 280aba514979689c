// Package cache remembers what a build read and wrote, so that "nothing has
// changed" is decided in about a millisecond, without a child process and
// without loading a type.
//
//	b := cache.Open("").Start(file+"\x00"+options, cache.Identify(options), dir)
//	if b.Fresh() {
//		return // what is on disk is what this build would write
//	}
//	…                                     // the build, with write.Apply at its end
//	b.Record(cache.Inputs{
//		Files: append(cache.ModuleFiles(dir, os.Getenv("GOWORK")), file), // of each of the folders
//		Dirs:  packageDirs,                                               // all their Go files are inputs
//	}, outputs)
//
// Start comes before the first input is read, Record after the last output is
// written. Record only builds that had nothing to say: a fresh build prints no
// warnings.
//
// A build that must not write what is stale calls Watch after Fresh, and asks Changed
// before and after it writes:
//
//	b.Watch(cache.Inputs{…})                     // what it is likely to read
//	…
//	if path := b.Changed(inputs, outputs); path != "" {
//		…                                        // begin again
//	}
//
// For the result of a child process, call Recall in place of Fresh, and RecordValue in
// place of Record.
//
// # Guarantees
//
// A build is fresh when generator, options and environment are the same, each
// watched folder has the same Go files, each input has the same content or is
// still absent, and each output has the content that was written. Files are
// compared by size, times and inode, and by SHA-256 where these differ or where
// the last change was so short before the comparison that a further one could
// hide behind the same time ([racyWindow]; git's index does the same). An input
// that changed after Start or Watch is not recorded, since the build may have seen
// either version, and neither is a file that was read before Start and has another
// content now.
//
// Everything in doubt is not fresh: a record that is corrupt, truncated, too
// large, of another version or of another key, a file that cannot be read. A
// cache folder that is missing or cannot be written is no cache, silently. It
// may be deleted at any time; records are replaced by renaming, and there are at
// most [recordsMax] of them.
//
// # Limits
//
// The generator is recognized by the size, times and inode of its executable.
// Whoever can write into the user's cache folder can make a build count as
// fresh, or believe that packages are others than the go command says.
package cache
