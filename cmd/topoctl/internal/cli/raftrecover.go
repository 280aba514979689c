package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/raft/wal"
)

// founded is the first member of a new group.
type founded struct {
	Name    string // "": as the node was called before, or that of a machine on one disk
	Address string // "": it is a machine on one disk
	To      string // path of the log, as the topology has it
}

// RaftRestore makes a new group of a backup.
type RaftRestore struct {
	founded
	File string
}

// RaftRecover makes a new group of the folder of a node.
type RaftRecover struct {
	founded
	Dir string
	Yes bool
}

func (f *founded) flags(cmd *cobra.Command, n *Node) {
	flags := cmd.Flags()
	flags.StringVar(&f.Name, "node", "", "the name of the first node")
	flags.StringVar(&f.Address, "address", "", "where the other nodes reach it, HOST:PORT; without it the log is one of a machine on one disk")
	flags.StringVar(&f.To, "to", "", "the path that the topology gives the log; with --address its log is in PATH/NAME")
	withoutNode(cmd)
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if n.Addr != "" {
			return errors.New("it works on files of this host, without --addr")
		}
		if f.Address != "" && f.Name == "" {
			return errors.New("a node with an address needs a name, --node NAME")
		}
		if f.Address == "" && f.Name != "" {
			return errors.New("a node with a name needs an address, --address HOST:PORT; without both the log is one of a machine on one disk")
		}
		if _, port, err := net.SplitHostPort(f.Address); f.Address != "" && (err != nil || port == "") {
			return fmt.Errorf("--address must be HOST:PORT, got %q", f.Address)
		}
		return run(cmd, args)
	}
}

// withoutNode keeps the flags that say which node is asked out of the help of a command
// that asks none.
func withoutNode(cmd *cobra.Command) {
	cmd.SetUsageTemplate(strings.ReplaceAll(cmd.UsageTemplate(), "{{if .HasAvailableInheritedFlags}}", "{{if false}}"))
}

func newRaftRestore(chosen *command, n *Node) *cobra.Command {
	r := RaftRestore{}
	cmd := &cobra.Command{
		Use:   "restore FILE --to PATH [--node NAME --address HOST:PORT]",
		Short: "Make a new group of a backup",
		Long: `Make a new group of FILE, which "topoctl raft backup" has written. PATH is that of
the log in the topology (log.path), or below TOPOGEN_RAFT_DIR the name of the group.
With --node and --address the group has this one member, to which others can be
added; without them the log is one of a machine on one disk.

The group gets an identity of its own: nodes of the group from which the backup was
taken refuse its messages. Stop them, so that clients do not talk to two groups.`,
		Example: `  topoctl raft restore ledger.backup --to ./ledger --node n1 --address 10.0.0.1:7101
  topoctl raft restore ledger.backup --to ./ledger`,
		Args:                  oneOf("the backup"),
		DisableFlagsInUseLine: true,
		RunE: func(_ *cobra.Command, args []string) error {
			r.File = args[0]
			*chosen = r
			if r.To == "" {
				return errors.New("name the path of the new log, --to PATH")
			}
			return nil
		},
	}
	r.flags(cmd, n)
	return cmd
}

func newRaftRecover(chosen *command, n *Node) *cobra.Command {
	r := RaftRecover{}
	cmd := &cobra.Command{
		Use:   "recover DIR [--node NAME --address HOST:PORT] [--to PATH] [--yes]",
		Short: "Make a new group of the folder of a node",
		Long: `Make a new group of the log in DIR, the folder of a node that does not run. This is
for a group that has lost its majority for good, and for moving from one disk to
several nodes and back.

Updates that this node did not get are lost, even if they were acknowledged. Those
that it got are kept, even if they were not. The group gets an identity of its own,
and one member. The other nodes of the old group cannot be members of it with their
logs: stop them, empty their folders, start them, and add them with "topoctl raft add".

Without --to the new log takes the place of DIR, whose name must be that of the node,
and the old one stays beside it as DIR.old. With --to it is written there: PATH is that
of the log in the topology. With --node and --address others can be added to the group;
without them the log is one of a machine on one disk.

Without --yes nothing is done; the command says what it would do.`,
		Example: `  topoctl raft recover ledger/n1 --node n1 --address 10.0.0.1:7101 --yes           # the majority is lost
  topoctl raft recover ledger --node n1 --address 10.0.0.1:7101 --to nodes --yes   # from one disk to several nodes
  topoctl raft recover nodes/n1 --to ledger --yes                                  # and back`,
		Args:                  oneOf("the folder of the node"),
		DisableFlagsInUseLine: true,
		RunE: func(_ *cobra.Command, args []string) error {
			r.Dir = args[0]
			*chosen = r
			if r.To == "" && r.Address == "" {
				return errors.New("name the node that takes the place of the old one, --node NAME --address HOST:PORT, or where the log goes, --to PATH")
			}
			return nil
		},
	}
	r.flags(cmd, n)
	cmd.Flags().BoolVar(&r.Yes, "yes", false, "do it")
	return cmd
}

func (r RaftRestore) run(_ context.Context, s Streams) error {
	i, err := raft.OpenBackup(r.File)
	switch {
	case errors.Is(err, raft.ErrImage):
		return fmt.Errorf("%w\nTake another backup", err)
	case err != nil:
		return fmt.Errorf("cannot read the backup: %w", err)
	}
	defer func() { _ = i.Close() }() // it was only read
	return r.found(i, s.Err)
}

func (r RaftRecover) run(_ context.Context, s Streams) error {
	i, err := raft.OpenImage(r.Dir)
	if errors.Is(err, wal.ErrInUse) {
		return fmt.Errorf("the node of %s runs: stop it first", oneLine(r.Dir))
	}
	if err != nil {
		return logError(r.Dir, err)
	}
	defer func() { _ = i.Close() }() // it was only read
	if r.To == "" {
		if err := i.CheckPlace(r.Name, r.Address); err != nil {
			return err
		}
	}
	r.warn(i, s.Err)
	if !r.Yes {
		return errors.New("nothing was done: say --yes to do that")
	}
	if r.To != "" {
		return r.found(i, s.Err)
	}
	kept, err := i.FoundInPlace(r.Name, r.Address)
	if errors.Is(err, wal.ErrInUse) {
		return fmt.Errorf("the node of %s runs: stop it first", oneLine(r.Dir))
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(s.Err, "topoctl: the old log is in %s\n", oneLine(kept))
	return r.say(filepath.Clean(r.Dir), s.Err)
}

// warn prints what the new group will have, and which updates are lost.
func (r RaftRecover) warn(i *raft.Image, w io.Writer) {
	fmt.Fprintf(w, "topoctl: %s is the log of %s of group %s, with entries up to %d\n", oneLine(r.Dir), oneLine(i.Node), oneLine(i.Group), i.Last)
	var others []string
	for _, m := range i.Members {
		if m.Name != i.Node {
			others = append(others, oneLine(m.Name))
		}
	}
	if len(others) > 0 {
		fmt.Fprintf(w, `topoctl: WARNING: updates that only %s got are lost, even if they were acknowledged
topoctl: a new group with another identity begins with this log; stop %s, empty their
topoctl: folders, start them and add them with "topoctl raft add"; never start them with their old logs
`, strings.Join(others, ", "), strings.Join(others, ", "))
	}
}

// found writes the log of the new group, and says what it is.
func (f *founded) found(i *raft.Image, w io.Writer) error {
	name := f.Name
	if name == "" {
		name = "alone" // as the runtime calls the only node
	}
	if err := i.Found(f.To, name, f.Address); err != nil {
		return err
	}
	dir := f.To
	if f.Address != "" {
		dir = filepath.Join(f.To, f.Name)
	}
	return f.say(dir, w)
}

// say says what is in the folder of the new log.
func (f *founded) say(dir string, w io.Writer) error {
	report, err := wal.Verify(dir)
	if err != nil {
		return logError(dir, err)
	}
	what := "a machine on one disk"
	if f.Address != "" {
		what = fmt.Sprintf("%s, the only member at %s", oneLine(f.Name), oneLine(f.Address))
	}
	fmt.Fprintf(w, "topoctl: %s is the log of %s: a new group with identity %016x, up to entry %d\n", oneLine(dir), what, report.Identity.GroupID, report.Last)
	return nil
}
