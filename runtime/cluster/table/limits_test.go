package table_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/cluster/table"
)

// TestLargestNodes fills a table with the largest nodes: its snapshot can be read again.
func TestLargestNodes(t *testing.T) {
	s := table.NewState()
	apply := func(changes ...table.Change) table.Outcome {
		r := s.Revision()
		r.Index++
		out, _ := s.Apply(r, time.Now().UnixNano(), &table.Command{Kind: table.CommandTxn, Changes: changes})
		return out
	}
	n := table.Node{Name: fmt.Sprintf("%0*d", table.NameBytesMax, 0), Address: fmt.Sprintf("%0*d", table.NameBytesMax, 0)}
	for i := range table.RolesMax {
		n.Roles = append(n.Roles, fmt.Sprintf("%0*d", table.NameBytesMax, i))
	}
	for {
		out := apply(table.Join{Node: n})
		if out.Code == 0 {
			break
		}
		if n.Roles = n.Roles[1:]; len(n.Roles) == 0 {
			t.Fatal(out.Text)
		}
	}
	var others []table.Change
	for i := 1; i < table.NodesMax; i++ {
		n.Name = fmt.Sprintf("%0*d", table.NameBytesMax, i)
		others = append(others, table.Join{Node: n})
	}
	if out := apply(others...); out.Code != 0 {
		t.Fatal(out.Text)
	}
	b := s.Append(nil)
	if _, err := table.ReadState(b); err != nil {
		t.Errorf("a snapshot of %d bytes with %d roles for each node cannot be read: %v", len(b), len(n.Roles), err)
	}
}

// TestUnreadableCommand: a command that other nodes could not read is refused before it is
// in a log.
func TestUnreadableCommand(t *testing.T) {
	long := fmt.Sprintf("%0*d", table.NameBytesMax+1, 0)
	for _, c := range []*table.Command{
		{Kind: table.CommandTxn, Guards: []table.Guard{table.StateIs{Name: long}}},
		{Kind: table.CommandTxn, Guards: []table.Guard{table.EpochIs{Processor: "a", Instance: table.ContainersMax + 1}}},
		{Kind: table.CommandTxn, Changes: []table.Change{table.Forget{Name: long}}},
		{Kind: table.CommandTxn, Changes: []table.Change{table.Define{Plan: long}}},
		{Kind: table.CommandTxn, Changes: []table.Change{table.Define{Plan: "p", Description: strings.Repeat("x", table.DescriptionBytesMax+1)}}},
	} {
		if b, err := table.AppendCommand(nil, c); !errors.Is(err, table.ErrInvalid) {
			t.Errorf("%+v is encoded in %d bytes: %v", c, len(b), err)
		}
	}
}
