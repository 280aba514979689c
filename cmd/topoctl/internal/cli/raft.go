package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/transport/grpc"
)

// Node is where the commands below raft go, and who asks.
type Node struct {
	Addr    string
	Group   string // "": the only one of the node
	Cert    string // files of an operator's certificate; all three or none
	Key     string
	CA      string
	Timeout time.Duration

	asked  string // address of a node that has sent this on to Addr; "": none has
	sentTo string // the leader, as that node knows
}

// RaftTransfer makes another node the leader.
type RaftTransfer struct {
	Node
	To string
}

// RaftSnapshot has a node take a snapshot.
type RaftSnapshot struct{ Node }

// nodeTimeout is longer than several elections take.
const nodeTimeout = 30 * time.Second

func newRaft(chosen *command) *cobra.Command {
	n := Node{Timeout: nodeTimeout}
	cmd := &cobra.Command{
		Use:   "raft",
		Short: "Look after state machines that run on several machines",
		Long: `Look after state machines that run on several machines: ask the node that listens
on --addr, or give its group an order. What only the leader can do goes to the
leader that this node knows.

With TLS the three files are those of an operator's certificate, which
"topoctl certs --operator" makes for development. A node without TLS takes orders
from whoever reaches it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SetOut(cmd.ErrOrStderr())
			if err := cmd.Help(); err != nil {
				return err
			}
			return errNoCommand
		},
	}
	flags := cmd.PersistentFlags()
	flags.StringVar(&n.Addr, "addr", "", "where the node listens, HOST:PORT")
	flags.StringVar(&n.Group, "group", "", "the group of the machine; needed where the node has several")
	flags.StringVar(&n.Cert, "cert", "", "the operator's certificate")
	flags.StringVar(&n.Key, "key", "", "its key")
	flags.StringVar(&n.CA, "ca", "", "the authorities that sign certificates of nodes")
	flags.DurationVar(&n.Timeout, "timeout", n.Timeout, "how long to wait")
	cmd.AddCommand(newRaftStatus(chosen, &n), newRaftMembers(chosen, &n), newRaftTransfer(chosen, &n), newRaftSnapshot(chosen, &n), newRaftAdd(chosen, &n),
		newRaftBackup(chosen, &n), newRaftRestore(chosen, &n), newRaftRecover(chosen, &n))
	cmd.AddCommand(newRaftChanges(chosen, &n)...)
	return cmd
}

func newRaftTransfer(chosen *command, n *Node) *cobra.Command {
	return &cobra.Command{
		Use:   "transfer NAME",
		Short: "Make another node the leader",
		Long: `Make the node NAME the leader of its group, before its present leader is stopped
for example: so nobody has to wait for an election timeout. Returns when it leads.`,
		Example: `  topoctl raft transfer n2 --addr 10.0.0.1:7101`,
		Args:    oneOf("the node that is to lead"),
		RunE: func(_ *cobra.Command, args []string) error {
			*chosen = RaftTransfer{*n, args[0]}
			return n.check()
		},
	}
}

func newRaftSnapshot(chosen *command, n *Node) *cobra.Command {
	return &cobra.Command{
		Use:   "snapshot",
		Short: "Have a node take a snapshot now",
		Long: `Have the node take a snapshot of its state now, and let go of the log that it
holds. A node does that by itself, each snapshot_every entries; now is better
before its folder is copied, or before it is stopped for a while.`,
		Example: `  topoctl raft snapshot --addr 10.0.0.1:7101`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			*chosen = RaftSnapshot{*n}
			return n.check()
		},
	}
}

// check says what is missing in the flags.
func (n *Node) check() error {
	files := 0
	for _, name := range []string{n.Cert, n.Key, n.CA} {
		if name != "" {
			files++
		}
	}
	switch {
	case n.Addr == "":
		return errors.New("name the address of a node, --addr HOST:PORT")
	case files != 0 && files != 3:
		return errors.New("with TLS name all of --cert, --key and --ca")
	case n.Timeout <= 0:
		return fmt.Errorf("--timeout %v: want more than 0", n.Timeout)
	}
	return nil
}

// operate has the node do something.
func (n *Node) operate(ctx context.Context, c raft.Command) (raft.Report, error) {
	var files *grpc.TLS
	if n.Cert != "" {
		files = &grpc.TLS{Cert: n.Cert, Key: n.Key, CA: n.CA}
	}
	c.Group = n.Group
	r, err := raft.Operate(ctx, n.Addr, files, c)
	return r, n.explain(err)
}

// explain says in a line what is wrong; it may be what somebody else has written.
func (n *Node) explain(err error) error {
	var refused interface{ GRPCStatus() *status.Status }
	if err == nil {
		return nil
	}
	text, advice, who := err.Error(), "", oneLine(n.Addr)
	if errors.As(err, &refused) {
		s := refused.GRPCStatus()
		text = s.Message()
		if n.asked != "" {
			who = fmt.Sprintf("asked %s, was sent on to the leader %s at %s", oneLine(n.asked), oneLine(n.sentTo), who)
		}
		switch s.Code() {
		case codes.Unavailable:
			text = "cannot reach the node: " + reason(text)
			if n.Cert == "" {
				advice = "\nWhere the node has TLS, --cert, --key and --ca name the files of an operator."
			}
		case codes.DeadlineExceeded:
			text = fmt.Sprintf("no answer within %v", n.Timeout)
		case codes.Unimplemented:
			advice = "\nIs this the address of a node with state machines?"
		}
	}
	return fmt.Errorf("%s: %s%s", who, oneLine(strings.TrimSpace(text)), advice)
}

// reason is why there is no connection, in gRPC's words without its frame.
func reason(text string) string {
	_, quoted, _ := strings.Cut(text, "connection error: desc = ")
	if inner, err := strconv.Unquote(quoted); err == nil {
		text = inner
	}
	text = strings.TrimPrefix(text, "transport: ")
	return strings.TrimPrefix(text, "authentication handshake failed: ")
}

// group is what the node knows of the group that is asked for.
func (n *Node) group(ctx context.Context) (raft.GroupStatus, error) {
	r, err := n.operate(ctx, raft.Command{Do: "status"})
	switch {
	case err != nil:
		return raft.GroupStatus{}, err
	case len(r.Groups) == 0:
		return raft.GroupStatus{}, fmt.Errorf("%s: the node has no state machine yet", oneLine(n.Addr))
	case len(r.Groups) > 1:
		var names []string
		for _, g := range r.Groups {
			names = append(names, oneLine(g.Group))
		}
		return raft.GroupStatus{}, fmt.Errorf("%s: the node has several groups; name one with --group: %s", oneLine(n.Addr), strings.Join(names, ", "))
	}
	return r.Groups[0], nil
}

// leader is the node that leads the group, as this one knows.
func (n *Node) leader(ctx context.Context) (Node, error) {
	g, err := n.group(ctx)
	if err != nil {
		return *n, err
	}
	other := *n
	other.Group = g.Group
	if g.Leader == g.Node {
		return other, nil
	}
	for _, m := range g.Members {
		if m.Name == g.Leader && g.Leader != "" {
			other.Addr, other.asked, other.sentTo = m.Address, n.Addr, m.Name
			return other, nil
		}
	}
	if g.Role == "founding" || g.Role == "joining" {
		return other, fmt.Errorf("%s: node %s is not a member of a group yet, it is %s: see topoctl raft status", oneLine(n.Addr), oneLine(g.Node), oneLine(g.Role))
	}
	return other, fmt.Errorf("%s: node %s knows no leader now; there is none without a majority", oneLine(n.Addr), oneLine(g.Node))
}

// order has the leader do something. A change waits for the leader as long as the
// command may take.
func (n *Node) order(ctx context.Context, c raft.Command) (group string, err error) {
	ctx, cancel := context.WithTimeout(ctx, n.Timeout)
	defer cancel()
	leader, err := n.leader(ctx)
	if err == nil {
		_, err = leader.operate(ctx, c)
	}
	return oneLine(leader.Group), err
}

func (t RaftTransfer) run(ctx context.Context, s Streams) error {
	group, err := t.order(ctx, raft.Command{Do: "transfer", To: t.To})
	if err == nil {
		fmt.Fprintf(s.Err, "topoctl: %s leads group %s\n", oneLine(t.To), group)
	}
	return err
}

func (r RaftSnapshot) run(ctx context.Context, s Streams) error {
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	report, err := r.operate(ctx, raft.Command{Do: "snapshot"})
	if err == nil {
		fmt.Fprintf(s.Err, "topoctl: the snapshot holds the log up to entry %d\n", report.Snapshot)
	}
	return err
}
