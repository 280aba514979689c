package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/raft/wal"
)

// LogDump prints the records of a log.
type LogDump struct{ Dir string }

// LogVerify checks a log.
type LogVerify struct{ Dir string }

func newLog(chosen *command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "log",
		Short: "Inspect the log of a state machine",
		Long: `Inspect the log that a state machine keeps on disk. The commands change nothing.
The node may run at the same time; a record that it is writing may look incomplete.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SetOut(cmd.ErrOrStderr())
			if err := cmd.Help(); err != nil {
				return err
			}
			return errNoCommand
		},
	}
	cmd.AddCommand(newLogDump(chosen), newLogVerify(chosen))
	return cmd
}

func newLogDump(chosen *command) *cobra.Command {
	return &cobra.Command{
		Use:   "dump PATH",
		Short: "Print the records of a log, one per line",
		Long: `Print the records of the log in the directory PATH, one per line: file, offset,
length, type, term, index, and the bytes of data of an entry. Snapshot files come
last. The index of a "state" record is the index of the last committed entry. Most
"state" records have a mark: the number of the record, and the number of records that
were synced when it was written.

If the log is damaged, an error after the last valid record gives the position.`,
		Example: `  topoctl log dump ledger
  topoctl log dump ledger | grep ' entry ' | tail -1`,
		Args: oneOf("the directory of the log"),
		RunE: func(_ *cobra.Command, args []string) error {
			*chosen = LogDump{args[0]}
			return nil
		},
	}
}

func newLogVerify(chosen *command) *cobra.Command {
	return &cobra.Command{
		Use:   "verify PATH",
		Short: "Check every bit of a log, and print a summary",
		Long: `Check the log in the directory PATH as the node does when it starts, check the older
snapshot too, and print a summary. A crash leaves incomplete records at the end,
which were not synced. The node cuts them off, and they are not an error. Any other
difference from the written data is damage: the command prints file and offset, and
exits with 3. If the file "member", which identifies the node, is missing or does not
belong to the log, the command prints the summary and exits with 3. A segment shorter
than 16 MiB has lost its end and is also damage. So are a named pipe in place of a
file, and a file larger than a log can create; the command does not read these two.`,
		Example: `  topoctl log verify ledger`,
		Args:    oneOf("the directory of the log"),
		RunE: func(_ *cobra.Command, args []string) error {
			*chosen = LogVerify{args[0]}
			return nil
		},
	}
}

func (l LogDump) run(_ context.Context, s Streams) error {
	const layout = "%-43s %10s %10s %-13s %8s %12s  %s"
	w := bufio.NewWriter(s.Out)
	line := func(columns ...any) error {
		_, err := fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf(layout, columns...), " "))
		return err
	}
	header := false
	_, err := wal.Dump(l.Dir, func(r wal.Record) error {
		if !header {
			header = true
			if err := line("FILE", "OFFSET", "LENGTH", "TYPE", "TERM", "INDEX", "DETAILS"); err != nil {
				return err
			}
		}
		term, index, details := "-", "-", r.Detail
		if r.Term > 0 {
			term, index = strconv.FormatUint(r.Term, 10), strconv.FormatUint(r.Index, 10)
		}
		if r.Bytes > 0 || r.Type == "entry" {
			details = fmt.Sprintf("%d bytes", r.Bytes)
			if r.Detail != "" {
				details += ", " + r.Detail
			}
		}
		return line(oneLine(inside(l.Dir, r.File)), strconv.FormatInt(r.Offset, 10), strconv.FormatInt(r.Length, 10), r.Type, term, index, oneLine(details))
	})
	if flushErr := w.Flush(); flushErr != nil {
		return flushErr
	}
	return logError(l.Dir, err)
}

func (l LogVerify) run(_ context.Context, s Streams) error {
	r, err := wal.Verify(l.Dir)
	if err != nil {
		return logError(l.Dir, err)
	}
	w := bufio.NewWriter(s.Out)
	fmt.Fprintf(w, "identity  %s, id %016x\n", oneLine(r.Identity.String()), r.Identity.Node)
	fmt.Fprintf(w, "files     %d of segments, %d of snapshots; %d records\n", r.Segments, r.Snapshots, r.Records)
	if r.Snapshot > 0 {
		fmt.Fprintf(w, "snapshot  at %d\n", r.Snapshot)
	}
	if r.First > 0 {
		fmt.Fprintf(w, "entries   %d to %d\n", r.First, r.Last)
	}
	fmt.Fprintf(w, "state     term %d, committed up to %d\n", r.Term, r.Commit)
	if c := r.Cut; c != nil {
		fmt.Fprintf(w, "cut       %s at offset %d: the node will cut off %d bytes of incomplete records, which were not synced (%s)\n",
			oneLine(inside(l.Dir, c.File)), c.Offset, c.Bytes, oneLine(c.Reason))
		for _, path := range c.Removed {
			fmt.Fprintf(w, "remove    %s: the node will remove this file, of which nothing was synced\n", oneLine(inside(l.Dir, path)))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := raft.CheckRecord(l.Dir, r.Identity); err != nil {
		return fmt.Errorf("%s%s", oneLine(err.Error()), fmt.Sprintf(recordAdvice, oneLine(l.Dir)))
	}
	return nil
}

// recordAdvice loses no updates.
const recordAdvice = `
The log itself has no damage, but the node does not start. Put back the file that was there.
If that file is lost and the state machine runs on several nodes: "topoctl raft remove
NAME", empty the folder of the node, start the node, and "topoctl raft add NAME ADDRESS".
If the state machine is on one disk: "topoctl raft recover %s --to NEWPATH --yes"
writes all updates to a new log. Replace the folder with it.`

// inside returns the path of a file relative to a directory.
func inside(dir, file string) string {
	if name, err := filepath.Rel(dir, file); err == nil {
		return name
	}
	return file
}

// damageAdvice loses no updates. The node is removed from the group first, so that a
// vote that the damaged log has lost does not matter.
const damageAdvice = `
The node does not start with a damaged log. Keep a copy of it.
If the state machine runs on several nodes: "topoctl raft remove NAME", empty the
folder of the node, start the node, and "topoctl raft add NAME ADDRESS".
If the state machine is on one disk: restore a backup.`

// logError explains what is wrong with a log, and what to do.
func logError(dir string, err error) error {
	if err == nil {
		return nil
	}
	if damage, ok := errors.AsType[*wal.DamageError](err); ok {
		return fmt.Errorf("%s is damaged at offset %d: %s%s", oneLine(damage.File), damage.Offset, oneLine(damage.Reason), damageAdvice)
	}
	if errors.Is(err, wal.ErrNoLog) {
		err = wal.ErrNoLog
		if logs := wal.Find(dir); len(logs) > 0 {
			return fmt.Errorf("%s is not a log: %s", oneLine(dir), oneLine(nameOne(dir, logs)))
		}
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	advice := ""
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, wal.ErrNoLog) {
		advice = "\nName the directory of a log. It is the path of the log in the topology file."
	}
	return fmt.Errorf("cannot read the log in %s: %s%s", oneLine(dir), oneLine(err.Error()), advice)
}

// nameOne lists the logs below a directory, and names one of them.
func nameOne(dir string, logs []string) string {
	names := make([]string, len(logs))
	for i, log := range logs {
		names[i] = inside(dir, log)
	}
	if len(logs) == 1 {
		return fmt.Sprintf("it contains the log of %s: name %s", names[0], logs[0])
	}
	return fmt.Sprintf("it contains the logs of %s: name one of them, such as %s", strings.Join(names, ", "), logs[0])
}
