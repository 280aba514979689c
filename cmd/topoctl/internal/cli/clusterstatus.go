package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/topogen/topogen/runtime/cluster"
)

// ClusterStatus prints a node of a cluster, with its processors and edges.
type ClusterStatus struct {
	Node
	JSON bool
}

func newClusterStatus(chosen *command, n *Node) *cobra.Command {
	c := ClusterStatus{}
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Print the state of a node and the figures of its edges",
		Long: `Print the state of a node, the number of nodes that it reaches, and the figures of its
edges. SENT counts messages of instances on this node, to instances on any node: HANDLED,
DROPPED and PENDING add up to it. PENDING messages are in a queue, on their way, or not
confirmed by the other node yet. ARRIVED counts messages of other nodes, and WAITING is
the part of them that no handler has taken yet.

A node is fenced while it reaches no majority of the nodes.`,
		Example: `  topoctl cluster status --addr 10.0.0.1:7400
  topoctl cluster status --addr 10.0.0.1:7400 --cert operator-ann.crt --key operator-ann.key --ca ca.crt
  topoctl cluster status --addr 10.0.0.1:7400 --json | jq .coordinator`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			c.Node = *n
			*chosen = c
			return n.check()
		},
	}
	addJSON(cmd, &c.JSON)
	return cmd
}

func (c ClusterStatus) run(ctx context.Context, s Streams) error {
	r, err := c.ask(ctx, cluster.Command{Show: cluster.ShowStatus})
	if err != nil {
		return err
	}
	if c.JSON {
		r.Nodes, r.Processors, r.Edges, r.Moves = orEmpty(r.Nodes), orEmpty(r.Processors), orEmpty(r.Edges), orEmpty(r.Moves)
		return printJSON(s.Out, r.View)
	}
	fenced := "no"
	if r.Fenced {
		fenced = "yes"
	}
	alive, left, here, all := 0, 0, 0, 0
	for i := range r.Nodes {
		all += r.Nodes[i].Instances
		if r.Nodes[i].Name == r.View.Node {
			here = r.Nodes[i].Instances
		}
		if r.Nodes[i].State == "left" {
			left++
		} else if r.Nodes[i].Reachable && r.Nodes[i].Found {
			alive++
		}
	}
	for _, line := range [][2]string{
		{"topology", fmt.Sprintf("%s, plan %s", r.Topology, r.Plan)},
		{"node", fmt.Sprintf("%s at %s, %s", r.View.Node, r.Address, r.State)},
		{"fenced", fenced},
		{"coordinator", orNone(r.Coordinator)},
		{"nodes", fmt.Sprintf("%d of %d reachable", alive, len(r.Nodes)-left)},
		{"instances", fmt.Sprintf("%d of %d on this node", here, all)},
		{"table", "revision " + orNone(r.Revision)},
	} {
		fmt.Fprintf(s.Out, "%-12s %s\n", line[0], oneLine(line[1]))
	}
	fmt.Fprintln(s.Out)
	t := table{{"EDGE", "SENT", "HANDLED", "DROPPED", "PENDING", "ARRIVED", "WAITING"}}
	for _, e := range r.Edges {
		t = append(t, []string{e.Name, number(e.Sent), number(e.Handled), number(e.Dropped), number(e.Pending), number(e.Arrived), number(e.Waiting)})
	}
	return t.print(s.Out)
}

// ClusterNodes prints the nodes of a cluster.
type ClusterNodes struct {
	Node
	JSON bool
}

func newClusterNodes(chosen *command, n *Node) *cobra.Command {
	c := ClusterNodes{}
	cmd := &cobra.Command{
		Use:   "nodes",
		Short: "Print the nodes of a cluster",
		Long: `Print the nodes of a cluster, as the node at --addr knows them. STATE is the state in the
address table: joining, member, leaving or left. DETECTOR is what failure detection says
(alive, probe-failed, suspected, dead or left), and SINCE when this began. REACHABLE says
whether messages are sent to the node now; a node that drains gets no new ones. The bytes,
the RESENT frames and RTT belong to the connection between the two nodes.
KEPT messages were sent to instances there, and are not confirmed yet. DROPPED messages
could not be delivered there.`,
		Example: `  topoctl cluster nodes --addr 10.0.0.1:7400
  topoctl cluster nodes --addr 10.0.0.1:7400 --json | jq '.[] | select(.detector != "alive").name'`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			c.Node = *n
			*chosen = c
			return n.check()
		},
	}
	addJSON(cmd, &c.JSON)
	return cmd
}

func (c ClusterNodes) run(ctx context.Context, s Streams) error {
	r, err := c.ask(ctx, cluster.Command{Show: cluster.ShowNodes})
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(s.Out, orEmpty(r.Nodes))
	}
	t := table{{"NAME", "ADDRESS", "ROLES", "STATE", "DETECTOR", "SINCE", "REACHABLE", "INSTANCES", "BYTES-SENT", "BYTES-RECEIVED", "RESENT", "RTT", "KEPT", "DROPPED"}}
	for _, n := range r.Nodes {
		since := unknown
		if n.DetectorSince != nil {
			since = seen(*n.DetectorSince, "2006-01-02T15:04:05Z")
		}
		reachable := "no"
		switch {
		case n.Detector == "left" || n.Detector == "dead": // its process has ended, after it drained
		case n.Draining:
			reachable = "drains"
		case n.Reachable && n.Found:
			reachable = "yes"
		}
		row := []string{n.Name, orNone(n.Address), orNone(strings.Join(n.Roles, ",")), orNone(n.State), orNone(n.Detector), since, reachable, strconv.Itoa(n.Instances)}
		if traffic := n.Traffic; n.Name == r.View.Node {
			row = append(row, unknown, unknown, unknown, unknown, unknown, unknown)
		} else {
			rtt := unknown
			if traffic.RTT > 0 {
				rtt = traffic.RTT.String()
			}
			row = append(row, number(traffic.BytesSent), number(traffic.BytesReceived), number(traffic.FramesResent), rtt, number(traffic.Kept), number(traffic.Dropped))
		}
		t = append(t, row)
	}
	return t.print(s.Out)
}
