package finding

// catalogueFiles explains the findings about files, which package gen makes.
var catalogueFiles = []Explanation{
	{
		Code:   Unreadable,
		Title:  "a file cannot be read",
		Reason: "The topology file, or a file that stands where one is to be written, or a snapshot, cannot be read. The message says what the system says.",
	},
	{
		Code:   NotOurs,
		Title:  "the output is not topogen's",
		Reason: "Where a file is to be written stands one that a person wrote, or that was edited by hand: its header and its body disagree. It is not overwritten. Move it, or delete it if nothing in it is wanted.",
	},
	{
		Code:   Unwritable,
		Title:  "a file cannot be written",
		Reason: "The folder is read-only, the disk is full, or the like; the message says what the system says. What stood there before stands there still.",
	},
	{
		Code:   LeavesModule,
		Title:  "the output leads out of the module",
		Reason: "The path of the output goes through a symbolic link or otherwise leaves the folder of the topology file. Generated files stay within.",
	},
	{
		Code:   OutOfDate,
		Title:  "a generated file is not up to date",
		Reason: "What is on disk is not what topogen build would write: it is missing, differs, or would no longer be written. Run topogen build and commit what it writes.",
	},
	{
		Code:   SnapshotUnfit,
		Title:  "a snapshot does not fit",
		Reason: "The file after topogen graph --load is no JSON of what Snapshot() returns, or it is of another topology, or of this one before it was changed: processors are found by their name and number of instances, edges by their ends and message. Take a snapshot from a program that was built from this file.",
	},
	{
		Code:   Overtaken,
		Title:  "a file changed while the build ran",
		Reason: "The topology, a Go file or a generated file changed while topogen read or wrote, several times in a row. The generated files on disk may be of a state before the last change. Run topogen build again when the program that changes files is done: an editor, a generator or another build.",
	},
}
