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

// newGroup describes the first member of a new group.
type newGroup struct {
	Name    string // "": the name of the old node, or of a state machine on one disk
	Address string // "": the state machine is on one disk
	To      string // path of the log in the topology file
}

// RaftRestore creates a new group from a backup.
type RaftRestore struct {
	newGroup
	File string
}

// RaftRecover creates a new group from the folder of a node.
type RaftRecover struct {
	newGroup
	Dir string
	Yes bool
}

func (g *newGroup) flags(cmd *cobra.Command, n *Node) {
	flags := cmd.Flags()
	flags.StringVar(&g.Name, "node", "", "the name of the first node")
	flags.StringVar(&g.Address, "address", "", "the address of the first node, HOST:PORT; without it the state machine is on one disk")
	flags.StringVar(&g.To, "to", "", "the path of the log in the topology file; with --address the log is in PATH/NAME")
	withoutNode(cmd)
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if n.Addr != "" {
			return errors.New("the command works on files of this host: omit --addr")
		}
		if g.Address != "" && g.Name == "" {
			return errors.New("a node with an address needs a name: --node NAME")
		}
		if g.Address == "" && g.Name != "" {
			return errors.New("a node with a name needs an address: --address HOST:PORT; omit both for a state machine on one disk")
		}
		if _, port, err := net.SplitHostPort(g.Address); g.Address != "" && (err != nil || port == "") {
			return fmt.Errorf("--address must be HOST:PORT, got %q", g.Address)
		}
		return run(cmd, args)
	}
}

// withoutNode removes the flags that select a node from the help of a command that
// calls none.
func withoutNode(cmd *cobra.Command) {
	cmd.SetUsageTemplate(strings.ReplaceAll(cmd.UsageTemplate(), "{{if .HasAvailableInheritedFlags}}", "{{if false}}"))
}

func newRaftRestore(chosen *command, n *Node) *cobra.Command {
	r := RaftRestore{}
	cmd := &cobra.Command{
		Use:   "restore FILE --to PATH [--node NAME --address HOST:PORT]",
		Short: "Create a new group from a backup",
		Long: `Create a new group from FILE, which "topoctl raft backup" has written. PATH is the path
of the log in the topology file (log.path), or the name of the group below
TOPOGEN_RAFT_DIR. With --node and --address the group has this one member, and others
can be added. Without them the state machine is on one disk.

The group gets a new identity. Nodes of the group from which the backup was taken
refuse its messages. Stop those nodes, so that clients do not use both groups.`,
		Example: `  topoctl raft restore ledger.backup --to ./ledger --node n1 --address 10.0.0.1:7101
  topoctl raft restore ledger.backup --to ./ledger`,
		Args:                  oneOf("the backup"),
		DisableFlagsInUseLine: true,
		RunE: func(_ *cobra.Command, args []string) error {
			r.File = args[0]
			*chosen = r
			if r.To == "" {
				return errors.New("name the path of the new log: --to PATH")
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
		Short: "Create a new group from the folder of a node",
		Long: `Create a new group from the log in DIR, the folder of a stopped node. Use this for a
group that has lost its majority permanently, and to move a state from one disk to
several nodes or back.

Updates that this node has not received are lost, even if they were acknowledged.
Updates that it has received are kept, even if they were not acknowledged. The new group
has a new identity and one member. The other nodes of the old group cannot join with
their logs: stop them, empty their folders, start them, and add them with
"topoctl raft add".

Without --to the new log replaces DIR, whose name must be the name of the node, and the
old log is kept as DIR.old. With --to the new log is written to PATH, the path of the
log in the topology file. With --node and --address others can be added to the group.
Without them the state machine is on one disk.

With several instances, each instance has its own log: in the folder NAME/NUMBER, or
NUMBER on one disk. Repeat the command for each of these logs.

Without --yes the command changes nothing and prints what it would do.`,
		Example: `  topoctl raft recover ledger/n1 --node n1 --address 10.0.0.1:7101 --yes           # the majority is lost
  topoctl raft recover ledger --node n1 --address 10.0.0.1:7101 --to nodes --yes   # from one disk to several nodes
  topoctl raft recover nodes/n1 --to ledger --yes                                  # and back`,
		Args:                  oneOf("the folder of the node"),
		DisableFlagsInUseLine: true,
		RunE: func(_ *cobra.Command, args []string) error {
			r.Dir = args[0]
			*chosen = r
			if r.To == "" && r.Address == "" {
				return errors.New("name the node that replaces the old one, --node NAME --address HOST:PORT, or the path of the new log, --to PATH")
			}
			return nil
		},
	}
	r.flags(cmd, n)
	cmd.Flags().BoolVar(&r.Yes, "yes", false, "create the group")
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
	return r.create(i, s.Err)
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
	members, err := i.Others()
	if err != nil {
		return err
	}
	r.warn(i, members, s.Err)
	if !r.Yes {
		return errors.New("nothing was changed: repeat the command with --yes")
	}
	if r.To != "" {
		return r.create(i, s.Err)
	}
	kept, err := i.FoundInPlace(r.Name, r.Address)
	if errors.Is(err, wal.ErrInUse) {
		return fmt.Errorf("the node of %s runs: stop it first", oneLine(r.Dir))
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(s.Err, "topoctl: the old log is in %s\n", oneLine(kept))
	return r.printSummary(filepath.Clean(r.Dir), s.Err)
}

// warn prints which log the new group will have, and which updates are lost. members are
// the members of the old group without the node of the log.
func (r RaftRecover) warn(i *raft.Image, members []raft.Member, w io.Writer) {
	fmt.Fprintf(w, "topoctl: %s is the log of %s of group %s, with entries up to %d\n", oneLine(r.Dir), oneLine(i.Node), oneLine(i.Group), i.Last)
	var others []string
	for _, m := range members {
		others = append(others, oneLine(m.Name))
	}
	if len(others) > 0 {
		fmt.Fprintf(w, `topoctl: WARNING: updates that only %s received are lost, even if they were acknowledged
topoctl: the new group has a new identity and this log; stop %s, empty their
topoctl: folders, start them and add them with "topoctl raft add"; never start them with their old logs
`, strings.Join(others, ", "), strings.Join(others, ", "))
	}
}

// create writes the log of the new group, and prints a summary.
func (g *newGroup) create(i *raft.Image, w io.Writer) error {
	name := g.Name
	if name == "" {
		name = "alone" // as the runtime calls the only node
	}
	if err := i.Found(g.To, name, g.Address); err != nil {
		return err
	}
	return g.printSummary(i.LogPath(g.To, name, g.Address), w)
}

// printSummary prints what the folder of the new log contains.
func (g *newGroup) printSummary(dir string, w io.Writer) error {
	report, err := wal.Verify(dir)
	if err != nil {
		return logError(dir, err)
	}
	what := "a state machine on one disk"
	if g.Address != "" {
		what = fmt.Sprintf("%s, the only member at %s", oneLine(g.Name), oneLine(g.Address))
	}
	fmt.Fprintf(w, "topoctl: %s is the log of %s: a new group with identity %016x, up to entry %d\n", oneLine(dir), what, report.Identity.GroupID, report.Last)
	return nil
}
