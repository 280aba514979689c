package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/topogen/topogen/runtime/raft"
)

// RaftMembers prints the members of a group.
type RaftMembers struct {
	Node
	Format string // "text" or "json"
}

func newRaftMembers(chosen *command, n *Node) *cobra.Command {
	format := "text"
	cmd := &cobra.Command{
		Use:   "members",
		Short: "Print the members of a group",
		Long: `Print the members of a group. A voter counts for the majority. A learner gets the log
and does not count. A leaving member is a voter until the other members know that it
leaves. MATCH is the last entry that the member is known to have. HEARD says whether the
member has responded recently. Only the leader knows MATCH and HEARD. ID identifies the
member's disk.`,
		Example: `  topoctl raft members --addr 10.0.0.1:7101`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			*chosen = RaftMembers{*n, format}
			return n.check()
		},
	}
	cmd.Flags().Var(choice{&format, []string{"text", "json"}}, "format", "output format")
	return cmd
}

func (r RaftMembers) run(ctx context.Context, s Streams) error {
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	g, err := r.group(ctx)
	if err != nil {
		return err
	}
	if r.Format == "json" {
		return printJSON(s.Out, newGroupObject(g).Members)
	}
	t := table{{"NAME", "ADDRESS", "KIND", "MATCH", "HEARD", "ID"}}
	for _, m := range g.Members {
		match, heard := unknown, unknown
		if g.Role == "leader" && !m.Leaving {
			match, heard = number(m.Match), "no"
			if m.Active {
				heard = "yes"
			}
		}
		t = append(t, []string{m.Name, orNone(m.Address), kindOf(m), match, heard, fmt.Sprintf("%016x", m.ID)})
	}
	if err := t.print(s.Out); err != nil {
		return err
	}
	for _, m := range g.Members {
		printTransfer(m, s.Err)
	}
	return nil
}

// printTransfer prints how much of a snapshot a member has received.
func printTransfer(m raft.MemberStatus, w io.Writer) {
	t := m.Transfer
	if t == nil {
		return
	}
	fmt.Fprintf(w, "topoctl: %s has %d of %d bytes of the snapshot at %d", oneLine(m.Name), t.Came, t.Size, t.Index)
	if t.Error != "" {
		fmt.Fprintf(w, "; the transfer failed and will be repeated: %s", oneLine(t.Error))
	}
	fmt.Fprintln(w)
}
