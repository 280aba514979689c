// Package write writes generated files to disk. It is the last stage of the compiler. No
// other stage changes the disk.
//
//	body := …                                              // from emit, gofmt-ed
//	sealed := header.Seal(header.SourceOf(name, "topology.yml"), planSum, body)
//	changes, findings := write.Plan(write.Target{
//		Dir: dir, Source: "topology.yml",
//		Files: []write.File{{Name: name, Body: sealed}},
//	})
//	if len(findings) == 0 {
//		findings = write.Apply(ctx, nil, changes)               // or changes.Diff(w) for --check
//	}
//
// # Guarantees
//
// A file that a person wrote or edited is never overwritten or removed. The header that
// [Seal] adds contains a hash of the body, and [Plan] refuses to replace a file whose body
// does not match its header (TG502). CRLF line ends from a checkout do not matter.
//
// [Apply] writes and syncs all files under temporary names in the same folder. Then it
// checks the files that it will replace, and the inputs, once more. Then it renames. An
// error before the first rename changes nothing. If the process is killed later, each file
// is either old or new, never partial. The next build compares all files with the planned
// files and completes the work. It also removes the temporary files, with [Sweep] if it has
// nothing to write.
//
// There is no lock. Concurrent builds each rename whole files. After its last rename a
// build compares the files again, and checks the inputs again. So the build that renames
// last notices if the disk has files of two builds, or if its own files come from old
// inputs. It reports this with a finding that is [Overtaken], and the command starts again.
//
// Files that are up to date are not written, so their modification times do not change. A
// replaced file keeps its permissions.
//
// Each topology has one os.Root. Names that lead out of its folder, through a symbolic link
// or into a nested module are refused (TG504).
//
// # Limits
//
// Orphans are generated files from an earlier build. They are searched in the topology's
// folder and in the folders of its outputs. If an output moves out of a
// subfolder, the old file in the subfolder remains. Files larger than [FileBytesMax] are
// neither read nor written.
package write
