package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/topogen/topogen/runtime/raft"
)

// RaftChange changes a member of a group.
type RaftChange struct {
	Node
	Change raft.Change
	Done   string // the result, for the message: "is a voter of"
}

// RaftAdd adds a member as a learner, and promotes it when it has the log.
type RaftAdd struct {
	Node
	Name, Address string
	Learner       bool // do not promote it
	Force         bool
}

const forceHelp = "make the change even if the group may then lack a majority"

func newRaftAdd(chosen *command, n *Node) *cobra.Command {
	a := RaftAdd{}
	cmd := &cobra.Command{
		Use:   "add NAME ADDRESS",
		Short: "Add a node to a group",
		Long: `Add the node NAME, which the other nodes reach at ADDRESS. Start the node first, with
itself and some members as peers, because the leader requests the node's id. The node
gets the log as a learner, which has no vote. Then it becomes a voter. With --learner
it remains a learner.

The command returns when this is done. If --timeout is too short for the transfer of
the log, the node remains a learner; "topoctl raft promote" makes it a voter later.`,
		Example: `  topoctl raft add n4 10.0.0.4:7101 --addr 10.0.0.1:7101
  topoctl raft add n4 10.0.0.4:7101 --addr 10.0.0.1:7101 --timeout 1h`,
		Args: texts(2, "the node and its address, such as n4 10.0.0.4:7101"),
		RunE: func(_ *cobra.Command, args []string) error {
			a.Node, a.Name, a.Address = *n, args[0], args[1]
			*chosen = a
			return n.check()
		},
	}
	cmd.Flags().BoolVar(&a.Learner, "learner", false, "do not make the node a voter")
	cmd.Flags().BoolVar(&a.Force, "force", false, forceHelp)
	return cmd
}

// newRaftChanges returns the commands that make one change each.
func newRaftChanges(chosen *command, n *Node) (list []*cobra.Command) {
	for _, c := range []struct {
		use, short, long, example string
		arguments                 string // for the error about missing arguments
		done                      string
		change                    func(args []string) raft.Change
	}{
		{
			"promote NAME", "Make a learner a voter",
			`Make the learner NAME a voter. The leader refuses this if the learner does not respond
or lacks much of the log, because the group would have to wait for it.`,
			"  topoctl raft promote n4 --addr 10.0.0.1:7101", "the node", "is a voter of",
			func(args []string) raft.Change { return raft.Change{Kind: raft.Promote, Name: args[0]} },
		},
		{
			"remove NAME", "Remove a node from a group",
			`Remove the node NAME, whether it runs or not. A running node is notified and ends. The
name can be used again at once, but the log cannot: empty the folder of the node before
you add the node again. The leader refuses this if a majority of the other nodes does
not respond.`,
			"  topoctl raft remove n1 --addr 10.0.0.2:7101", "the node", "is removed from",
			func(args []string) raft.Change { return raft.Change{Kind: raft.Remove, Name: args[0]} },
		},
		{
			"address NAME ADDRESS", "Change the address of a node",
			`Change the address at which the other nodes reach the node NAME. The new address
overrides the address in their peers.`,
			"  topoctl raft address n2 10.0.0.12:7101 --addr 10.0.0.1:7101", "the node and its address, such as n2 10.0.0.12:7101", "has a new address in",
			func(args []string) raft.Change {
				return raft.Change{Kind: raft.Readdress, Name: args[0], Address: args[1]}
			},
		},
		{
			"rename NAME NEWNAME", "Rename a node",
			`Rename the node NAME to NEWNAME. A running node continues under its old name until you
stop it. Then rename the folder of its log, PATH/NAME, and start it under the new name.`,
			"  topoctl raft rename n2 berlin --addr 10.0.0.1:7101", "the node and its new name, such as n2 berlin", "has a new name in",
			func(args []string) raft.Change { return raft.Change{Kind: raft.Rename, Name: args[0], To: args[1]} },
		},
	} {
		force := false
		cmd := &cobra.Command{
			Use: c.use, Short: c.short, Long: c.long, Example: c.example,
			Args: texts(strings.Count(c.use, " "), c.arguments),
			RunE: func(_ *cobra.Command, args []string) error {
				o := c.change(args)
				o.Force = force
				*chosen = RaftChange{*n, o, c.done}
				return n.check()
			},
		}
		cmd.Flags().BoolVar(&force, "force", false, forceHelp)
		list = append(list, cmd)
	}
	return list
}

// texts requires n arguments, none of them empty.
func texts(n int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != n || strings.Join(args, "") == "" || args[n-1] == "" || args[0] == "" {
			return errors.New("name " + what)
		}
		return nil
	}
}

func (r RaftChange) run(ctx context.Context, s Streams) error {
	group, err := r.operateLeader(ctx, raft.Command{Do: "change", Changes: []raft.Change{r.Change}})
	if err == nil {
		fmt.Fprintf(s.Err, "topoctl: %s %s group %s\n", oneLine(r.Change.Name), r.Done, group)
	}
	return err
}

func (a RaftAdd) run(ctx context.Context, s Streams) error {
	ctx, cancel := context.WithTimeout(ctx, a.Timeout)
	defer cancel()
	change := func(c raft.Change) (group string, err error) {
		c.Name, c.Force = a.Name, a.Force
		return a.operateLeader(ctx, raft.Command{Do: "change", Changes: []raft.Change{c}})
	}
	group, err := change(raft.Change{Kind: raft.AddLearner, Address: a.Address})
	if err != nil {
		return err
	}
	fmt.Fprintf(s.Err, "topoctl: %s is a learner of group %s\n", oneLine(a.Name), group)
	if a.Learner {
		return nil
	}
	for {
		if _, err = change(raft.Change{Kind: raft.Promote}); err == nil {
			fmt.Fprintf(s.Err, "topoctl: %s is a voter of group %s\n", oneLine(a.Name), group)
			return nil
		}
		select {
		case <-time.After(promotePause):
		case <-ctx.Done():
			return fmt.Errorf("%s remains a learner. When it has the log, promote it: topoctl raft promote %s\n%w", oneLine(a.Name), oneLine(a.Name), err)
		}
	}
}

// promotePause is the pause between attempts to promote a new member.
const promotePause = 200 * time.Millisecond
