package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/topogen/topogen/runtime/raft"
)

// RaftMembers prints who belongs to a group.
type RaftMembers struct {
	Node
	Format string // "text" or "json"
}

// RaftChange changes who belongs to a group.
type RaftChange struct {
	Node
	Change raft.Change
	Done   string // what the member is then
}

func newRaftMembers(chosen *command, n *Node) *cobra.Command {
	format := "text"
	cmd := &cobra.Command{
		Use:   "members",
		Short: "Print who belongs to a group, or change it",
		Long: `Print who belongs to a group. A voter counts for the majority, a learner gets the
log and does not; the name of a removed member is never given again. MATCH is the
entry up to which a member is known to have the log, and HEARD whether it was
heard of lately: the leader alone knows that.`,
		Example: `  topoctl raft members --addr 10.0.0.1:7101
  topoctl raft members add-learner n4 10.0.0.4:7101 --addr 10.0.0.1:7101
  topoctl raft members promote n4 --addr 10.0.0.1:7101
  topoctl raft members remove n1 --addr 10.0.0.2:7101`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			*chosen = RaftMembers{*n, format}
			return n.check()
		},
	}
	cmd.Flags().Var(choice{&format, []string{"text", "json"}}, "format", "what to print")
	for _, c := range []struct {
		kind              raft.ChangeKind
		use, short, long  string
		done              string
		wantsAnAddressToo bool
	}{
		{
			raft.AddLearner, "add-learner NAME ADDRESS", "Add a node that gets the log and has no vote",
			`Add the node NAME, which listens on ADDRESS, as a learner: it gets the log, and has
no vote. Start it first, with TOPOGEN_RAFT_JOIN=true. When it has the log, as
MATCH of "topoctl raft members" shows, promote it.`, "is a learner of", true,
		},
		{
			raft.AddVoter, "add-voter NAME ADDRESS", "Add a node that has a vote at once",
			`Add the node NAME, which listens on ADDRESS, with a vote. Until it has the log, the
group can bear the loss of one node less: add-learner and promote are better.`, "is a voter of", true,
		},
		{
			raft.Promote, "promote NAME", "Give a learner a vote",
			`Give the learner NAME a vote. Who does not have the log yet holds up the others.`, "is a voter of", false,
		},
		{
			raft.Remove, "remove NAME", "Remove a node for good",
			`Remove the node NAME for good: its name is never given again. Stop its process
then, since the others may have left it behind before it heard of that.`, "is removed from", false,
		},
	} {
		change := &cobra.Command{
			Use:   c.use,
			Short: c.short,
			Long:  c.long,
			Args:  oneOf("the node"),
			RunE: func(_ *cobra.Command, args []string) error {
				o := raft.Change{Kind: c.kind, Name: args[0]}
				if c.wantsAnAddressToo {
					o.Address = args[1]
				}
				*chosen = RaftChange{*n, o, c.done}
				return n.check()
			},
		}
		if c.wantsAnAddressToo {
			change.Args = func(_ *cobra.Command, args []string) error {
				if len(args) != 2 || args[0] == "" || args[1] == "" {
					return errors.New("name the node and where the others reach it, n4 10.0.0.4:7101")
				}
				return nil
			}
		}
		cmd.AddCommand(change)
	}
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
	t := table{{"NAME", "ADDRESS", "KIND", "MATCH", "HEARD"}}
	for _, m := range g.Members {
		match, heard := unknown, unknown
		if g.Role == "leader" && !m.Removed {
			match, heard = number(m.Match), "no"
			if m.Active {
				heard = "yes"
			}
		}
		t = append(t, []string{m.Name, orNone(m.Address), kindOf(m), match, heard})
	}
	return t.print(s.Out)
}

func (r RaftChange) run(ctx context.Context, s Streams) error {
	group, err := r.order(ctx, raft.Command{Do: "change", Changes: []raft.Change{r.Change}})
	if err == nil {
		fmt.Fprintf(s.Err, "topoctl: %s %s group %s\n", oneLine(r.Change.Name), r.Done, group)
	}
	return err
}
