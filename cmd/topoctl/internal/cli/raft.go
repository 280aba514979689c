package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/transport/grpc"
)

// Node is the node that a command calls, with the operator's certificate.
type Node struct {
	Addr    string
	Group   string // of raft; "": the only group of the node
	Cert    string // files of an operator's certificate; either all three or none
	Key     string
	CA      string
	Timeout time.Duration

	service     string // that the node must have, for errors
	forwardedBy string // address of the node that named Addr as the leader; "": none
	leaderName  string // name of that leader
}

// RaftTransfer makes another node the leader.
type RaftTransfer struct {
	Node
	To string
}

// RaftSnapshot makes a node take a snapshot.
type RaftSnapshot struct{ Node }

// nodeTimeout is long enough for several elections.
const nodeTimeout = 30 * time.Second

func newRaft(chosen *command) *cobra.Command {
	n := Node{Timeout: nodeTimeout, service: "state machines"}
	cmd := &cobra.Command{
		Use:   "raft",
		Short: "Operate state machines that run on several nodes",
		Long: `Operate state machines that run on several nodes. The commands call the node that
listens on --addr. A command that only the leader can execute is sent to the leader
that this node names.

With TLS, --cert, --key and --ca are the files of an operator's certificate.
"topoctl certs --operator" creates one for development. A node without TLS accepts
commands from any client that can connect to it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SetOut(cmd.ErrOrStderr())
			if err := cmd.Help(); err != nil {
				return err
			}
			return errNoCommand
		},
	}
	n.addFlags(cmd.PersistentFlags())
	cmd.PersistentFlags().StringVar(&n.Group, "group", "", "the group of the state machine; required if the node has several groups")
	cmd.AddCommand(newRaftStatus(chosen, &n), newRaftMembers(chosen, &n), newRaftTransfer(chosen, &n), newRaftSnapshot(chosen, &n), newRaftAdd(chosen, &n),
		newRaftBackup(chosen, &n), newRaftRestore(chosen, &n), newRaftRecover(chosen, &n))
	cmd.AddCommand(newRaftChanges(chosen, &n)...)
	return cmd
}

func newRaftTransfer(chosen *command, n *Node) *cobra.Command {
	return &cobra.Command{
		Use:   "transfer NAME",
		Short: "Make another node the leader",
		Long: `Make the node NAME the leader of its group. Do this before you stop the current
leader, so that clients do not wait for an election timeout. The command returns when
NAME is the leader.`,
		Example: `  topoctl raft transfer n2 --addr 10.0.0.1:7101`,
		Args:    oneOf("the new leader"),
		RunE: func(_ *cobra.Command, args []string) error {
			*chosen = RaftTransfer{*n, args[0]}
			return n.check()
		},
	}
}

func newRaftSnapshot(chosen *command, n *Node) *cobra.Command {
	return &cobra.Command{
		Use:   "snapshot",
		Short: "Make a node take a snapshot now",
		Long: `Make the node take a snapshot of its state now, and remove the log before it. A node
does this automatically after snapshot_every entries. Run the command before you copy
the folder of the node, or before you stop the node for a long time.`,
		Example: `  topoctl raft snapshot --addr 10.0.0.1:7101`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			*chosen = RaftSnapshot{*n}
			return n.check()
		},
	}
}

// addFlags adds the flags that name the node.
func (n *Node) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&n.Addr, "addr", "", "the address of the node, HOST:PORT")
	flags.StringVar(&n.Cert, "cert", "", "the operator's certificate")
	flags.StringVar(&n.Key, "key", "", "the key of the operator's certificate")
	flags.StringVar(&n.CA, "ca", "", "the authorities that sign the certificates of nodes")
	flags.DurationVar(&n.Timeout, "timeout", n.Timeout, "the time limit of the command")
}

// files returns the operator's certificate, or nil.
func (n *Node) files() *grpc.TLS {
	if n.Cert == "" {
		return nil
	}
	return &grpc.TLS{Cert: n.Cert, Key: n.Key, CA: n.CA}
}

// check reports missing or contradicting flags.
func (n *Node) check() error {
	files := 0
	for _, name := range []string{n.Cert, n.Key, n.CA} {
		if name != "" {
			files++
		}
	}
	switch {
	case n.Addr == "":
		return errors.New("name the address of a node: --addr HOST:PORT")
	case files != 0 && files != 3:
		return errors.New("--cert, --key and --ca must be given together")
	case n.Timeout <= 0:
		return fmt.Errorf("--timeout must be more than 0, got %v", n.Timeout)
	}
	return nil
}

// operate sends a command to the node.
func (n *Node) operate(ctx context.Context, c raft.Command) (raft.Report, error) {
	c.Group = n.Group
	r, err := raft.Operate(ctx, n.Addr, n.files(), c)
	return r, n.explain(err)
}

// explain describes an error in one line. Its text may come from another host, so it
// is made printable.
func (n *Node) explain(err error) error {
	var refused interface{ GRPCStatus() *status.Status }
	if err == nil {
		return nil
	}
	text, advice, node := err.Error(), "", oneLine(n.Addr)
	if errors.As(err, &refused) {
		s := refused.GRPCStatus()
		text = s.Message()
		if n.forwardedBy != "" {
			node = fmt.Sprintf("the leader %s at %s, according to %s", oneLine(n.leaderName), node, oneLine(n.forwardedBy))
		}
		switch s.Code() {
		case codes.Unavailable:
			text = "cannot reach the node: " + reason(text)
			if n.Cert == "" {
				advice = "\nIf the node uses TLS, name the files of an operator's certificate with --cert, --key and --ca."
			}
		case codes.DeadlineExceeded:
			text = fmt.Sprintf("no answer within %v", n.Timeout)
		case codes.Unimplemented:
			advice = "\nIs this the address of a node with " + n.service + "?"
		}
	}
	return fmt.Errorf("%s: %s%s", node, oneLine(strings.TrimSpace(text)), advice)
}

// reason returns gRPC's reason for a failed connection, without the prefixes.
func reason(text string) string {
	_, quoted, _ := strings.Cut(text, "connection error: desc = ")
	if inner, err := strconv.Unquote(quoted); err == nil {
		text = inner
	}
	text = strings.TrimPrefix(text, "transport: ")
	return strings.TrimPrefix(text, "authentication handshake failed: ")
}

// group returns the status of the requested group.
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

// leader returns the leader of the group, according to this node.
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
			other.Addr, other.forwardedBy, other.leaderName = m.Address, n.Addr, m.Name
			return other, nil
		}
	}
	if g.Role == "founding" || g.Role == "joining" {
		return other, fmt.Errorf("%s: node %s is not a member of a group yet, it is %s: see topoctl raft status", oneLine(n.Addr), oneLine(g.Node), oneLine(g.Role))
	}
	return other, fmt.Errorf("%s: node %s knows no leader at the moment; a group without a majority has no leader", oneLine(n.Addr), oneLine(g.Node))
}

// operateLeader sends a command to the leader that the node names.
func (n *Node) operateLeader(ctx context.Context, c raft.Command) (group string, err error) {
	ctx, cancel := context.WithTimeout(ctx, n.Timeout)
	defer cancel()
	leader, err := n.leader(ctx)
	if err == nil {
		_, err = leader.operate(ctx, c)
	}
	return oneLine(leader.Group), err
}

func (t RaftTransfer) run(ctx context.Context, s Streams) error {
	group, err := t.operateLeader(ctx, raft.Command{Do: "transfer", To: t.To})
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
		fmt.Fprintf(s.Err, "topoctl: the snapshot contains the log up to entry %d\n", report.Snapshot)
	}
	return err
}
