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
	Done   string // what the member is then
}

// RaftAdd adds a member, and gives it a vote when it has the log.
type RaftAdd struct {
	Node
	Name, Address string
	Learner       bool // it gets no vote
	Force         bool
}

const forceHelp = "change it even if the group may not be able to go on"

func newRaftAdd(chosen *command, n *Node) *cobra.Command {
	a := RaftAdd{}
	cmd := &cobra.Command{
		Use:   "add NAME ADDRESS",
		Short: "Add a node to a group",
		Long: `Add the node NAME, which the others reach at ADDRESS. Start it before, with some
members and itself as peers: the leader asks it for its id. It gets the log as a
learner, which has no vote, and then a vote. With --learner it stays one.

Returns when that is done. Where the time of --timeout is too short for the log, the
node stays a learner; "topoctl raft promote" gives it its vote later.`,
		Example: `  topoctl raft add n4 10.0.0.4:7101 --addr 10.0.0.1:7101
  topoctl raft add n4 10.0.0.4:7101 --addr 10.0.0.1:7101 --timeout 1h`,
		Args: texts(2, "the node and where the others reach it, n4 10.0.0.4:7101"),
		RunE: func(_ *cobra.Command, args []string) error {
			a.Node, a.Name, a.Address = *n, args[0], args[1]
			*chosen = a
			return n.check()
		},
	}
	cmd.Flags().BoolVar(&a.Learner, "learner", false, "give it no vote")
	cmd.Flags().BoolVar(&a.Force, "force", false, forceHelp)
	return cmd
}

// newRaftChanges are the commands of one change each.
func newRaftChanges(chosen *command, n *Node) (list []*cobra.Command) {
	for _, c := range []struct {
		use, short, long, example string
		wants                     string // the arguments, for people
		done                      string
		change                    func(args []string) raft.Change
	}{
		{
			"promote NAME", "Give a learner a vote",
			`Give the learner NAME a vote. That is refused where it is not heard of, or lacks
much of the log: the group would wait for it.`,
			"  topoctl raft promote n4 --addr 10.0.0.1:7101", "the node", "is a voter of",
			func(args []string) raft.Change { return raft.Change{Kind: raft.Promote, Name: args[0]} },
		},
		{
			"remove NAME", "Remove a node from a group",
			`Remove the node NAME, whether it runs or not. It hears of it and ends. Its name can
be used again at once, its log cannot: empty its folder before it is added again.

That is refused where no majority of the others is heard of.`,
			"  topoctl raft remove n1 --addr 10.0.0.2:7101", "the node", "is removed from",
			func(args []string) raft.Change { return raft.Change{Kind: raft.Remove, Name: args[0]} },
		},
		{
			"address NAME ADDRESS", "Say where a node is reached",
			`Say that the others reach the node NAME at ADDRESS from now on. That goes before
what they have among their peers.`,
			"  topoctl raft address n2 10.0.0.12:7101 --addr 10.0.0.1:7101", "the node and where the others reach it, n2 10.0.0.12:7101", "is reached at another address in",
			func(args []string) raft.Change {
				return raft.Change{Kind: raft.Readdress, Name: args[0], Address: args[1]}
			},
		},
		{
			"rename NAME NEWNAME", "Give a node another name",
			`Give the node NAME the name NEWNAME. It goes on under the old one until it is stopped.
Then rename the folder of its log, PATH/NAME, and start it under the new name.`,
			"  topoctl raft rename n2 berlin --addr 10.0.0.1:7101", "the node and its new name, n2 berlin", "has another name in",
			func(args []string) raft.Change { return raft.Change{Kind: raft.Rename, Name: args[0], To: args[1]} },
		},
	} {
		force := false
		cmd := &cobra.Command{
			Use: c.use, Short: c.short, Long: c.long, Example: c.example,
			Args: texts(strings.Count(c.use, " "), c.wants),
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

// texts wants as many arguments, none of them empty.
func texts(n int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != n || strings.Join(args, "") == "" || args[n-1] == "" || args[0] == "" {
			return errors.New("name " + what)
		}
		return nil
	}
}

func (r RaftChange) run(ctx context.Context, s Streams) error {
	group, err := r.order(ctx, raft.Command{Do: "change", Changes: []raft.Change{r.Change}})
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
		return a.order(ctx, raft.Command{Do: "change", Changes: []raft.Change{c}})
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
			return fmt.Errorf("%s stays a learner. When it has the log, promote it: topoctl raft promote %s\n%w", oneLine(a.Name), oneLine(a.Name), err)
		}
	}
}

// promotePause is between attempts to give a new member its vote.
const promotePause = 200 * time.Millisecond
