// Package write brings generated files from memory to disk: it is the last
// stage of the compiler and the only one that touches the disk.
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
// A file that a person wrote or edited is never overwritten or removed: the
// header that [Seal] puts in front holds a hash of what follows it, and [Plan]
// refuses what does not agree with its header (TG502). A checkout with CRLF line
// ends agrees.
//
// [Apply] writes and syncs everything under temporary names in the same folder,
// looks once more at what it is about to replace and whether an input has changed,
// and only then renames. An error before the first rename changes nothing. A process
// that is killed later leaves each file either old or new, never a part of it. The
// next build compares all files with what it would write, and so finishes the work;
// it removes the temporary files too, by [Sweep] where it has nothing to write.
//
// There is no lock: builds that run at the same time each rename whole files over
// whole files. After its last rename a build compares again, and asks again whether
// an input has changed. So the build that renamed last notices where files of two
// builds are side by side, or where its own are of an earlier state, and reports it
// with a finding that is [Overtaken]. The command then begins again.
//
// Files that are right already are not touched, so their modification times
// stay. A file that is replaced keeps its permissions.
//
// Everything happens inside one os.Root for each topology. Names that lead out
// of its folder, through a symbolic link or into a nested module are refused
// (TG504).
//
// # Limits
//
// Orphans, files of ours that are no longer written, are looked for in the
// topology's folder and in the folders of its outputs; when an output moves out
// of a subfolder, the old file there stays. Files over [FileBytesMax] are neither
// read nor written.
package write
