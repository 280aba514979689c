package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/topogen/topogen/runtime/raft"
)

// RaftStatus prints the groups of a node.
type RaftStatus struct {
	Node
	Format string // "text" or "json"
}

func newRaftStatus(chosen *command, n *Node) *cobra.Command {
	format := "text"
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Print the groups of a node",
		Long: `Print the groups of a node, one per line, with the role of the node, the leader that it
knows, and the term. LAST is the index of the last entry of its log, COMMIT of the last
committed entry, APPLIED of the last applied entry, and SNAPSHOT of the last snapshot.
PENDING is the number of proposals of this node that wait for their outcome.`,
		Example: `  topoctl raft status --addr 10.0.0.1:7101
  topoctl raft status --addr 10.0.0.1:7101 --cert operator-ann.crt --key operator-ann.key --ca ca.crt
  topoctl raft status --addr 10.0.0.1:7101 --format json | jq -r '.[0].leader'`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			*chosen = RaftStatus{*n, format}
			return n.check()
		},
	}
	cmd.Flags().Var(choice{&format, []string{"text", "json"}}, "format", "output format")
	return cmd
}

func (r RaftStatus) run(ctx context.Context, s Streams) error {
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	report, err := r.operate(ctx, raft.Command{Do: "status"})
	if err != nil {
		return err
	}
	if r.Format == "json" {
		list := make([]groupObject, len(report.Groups))
		for i, g := range report.Groups {
			list[i] = newGroupObject(g)
		}
		return printJSON(s.Out, list)
	}
	t := table{{"GROUP", "NODE", "ROLE", "LEADER", "TERM", "LAST", "COMMIT", "APPLIED", "SNAPSHOT", "PENDING"}}
	for _, g := range report.Groups {
		t = append(t, []string{
			g.Group, g.Node, g.Role, orNone(g.Leader), number(g.Term), number(g.Last), number(g.Commit),
			number(g.Applied), number(g.Snapshot), strconv.Itoa(g.Pending),
		})
	}
	if err := t.print(s.Out); err != nil {
		return err
	}
	for _, g := range report.Groups {
		if g.SnapshotError != "" {
			fmt.Fprintf(s.Err, "topoctl: WARNING: group %s: node %s has no newer snapshot, and its log grows: %s\n", oneLine(g.Group), oneLine(g.Node), oneLine(g.SnapshotError))
		}
	}
	return nil
}

// groupObject is a group in json.
type groupObject struct {
	Group    string         `json:"group"`
	Identity *string        `json:"identity"` // of the group; null: the node is not a member yet
	Node     string         `json:"node"`
	Role     string         `json:"role"`
	Leader   *string        `json:"leader"` // null: the node knows no leader
	Term     uint64         `json:"term"`
	First    uint64         `json:"first"`
	Last     uint64         `json:"last"`
	Commit   uint64         `json:"commit"`
	Applied  uint64         `json:"applied"`
	Snapshot uint64         `json:"snapshot"`
	Problem  *string        `json:"snapshotError"` // why the last snapshot failed; null: it did not
	Pending  int            `json:"pending"`
	Members  []memberObject `json:"members"`
}

// memberObject is a member in json.
type memberObject struct {
	Name    string  `json:"name"`
	ID      string  `json:"id"` // hexadecimal, as in logs
	Address string  `json:"address"`
	Kind    string  `json:"kind"`
	Match   *uint64 `json:"match"`  // null: only the leader knows
	Active  *bool   `json:"active"` // null: only the leader knows

	Transfer *transferObject `json:"transfer"` // the snapshot that the leader sends to the member; null: none
}

// transferObject is the transfer of a snapshot, in json.
type transferObject struct {
	Index uint64  `json:"index"`
	Size  int64   `json:"size"`  // bytes of the state
	Sent  int64   `json:"sent"`  // bytes that the member has received
	Error *string `json:"error"` // why the last attempt failed; the leader tries again
}

func newGroupObject(g raft.GroupStatus) groupObject {
	o := groupObject{
		Group: g.Group, Node: g.Node, Role: g.Role, Term: g.Term, First: g.First, Last: g.Last, Commit: g.Commit,
		Applied: g.Applied, Snapshot: g.Snapshot, Pending: g.Pending, Members: []memberObject{},
	}
	if g.Leader != "" {
		o.Leader = &g.Leader
	}
	if g.SnapshotError != "" {
		o.Problem = &g.SnapshotError
	}
	if g.GroupID != 0 {
		o.Identity = new(fmt.Sprintf("%016x", g.GroupID))
	}
	for _, m := range g.Members {
		object := memberObject{Name: m.Name, ID: fmt.Sprintf("%016x", m.ID), Address: m.Address, Kind: kindOf(m)}
		if g.Role == "leader" && !m.Leaving {
			object.Match, object.Active = &m.Match, &m.Active
		}
		if t := m.Transfer; t != nil {
			object.Transfer = &transferObject{Index: t.Index, Size: t.Size, Sent: t.Came}
			if t.Error != "" {
				object.Transfer.Error = &t.Error
			}
		}
		o.Members = append(o.Members, object)
	}
	return o
}

// kindOf returns the kind of a member.
func kindOf(m raft.MemberStatus) string {
	switch {
	case m.Leaving:
		return "leaving"
	case m.Learner:
		return "learner"
	}
	return "voter"
}

func number(n uint64) string { return strconv.FormatUint(n, 10) }

// orNone returns s, or a dash if s is empty.
func orNone(s string) string {
	if s == "" {
		return unknown
	}
	return s
}

// table has rows of columns. The first row is the header.
type table [][]string

// print writes the rows with aligned columns, two spaces apart.
func (t table) print(w io.Writer) error {
	widths := make([]int, len(t[0]))
	for _, row := range t {
		for i, text := range row {
			row[i] = oneLine(text)
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	b := bufio.NewWriter(w)
	for _, row := range t {
		var line strings.Builder
		for i, text := range row {
			fmt.Fprintf(&line, "%-*s  ", widths[i], text)
		}
		fmt.Fprintln(b, strings.TrimRight(line.String(), " "))
	}
	return b.Flush()
}

// printJSON writes a value. Codes replace the characters of strings that do not print.
func printJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(appendPlainJSON(nil, b.Bytes()))
	return err
}
