package table_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"github.com/topogen/topogen/internal/test/allocated"
	"github.com/topogen/topogen/runtime/cluster/table"
)

// lines is the description of a small topology. change replaces texts in it.
func lines(change ...string) []string {
	text := strings.NewReplacer(change...).Replace(`topology bank =
processor feed = number 0, 1 instance, on node n1
processor counter = number 1, 64 instances
edge feed -> counter: Order = number 0, key Account (string)
message Order = .Order
type Order = field 1 Account string, field 2 Cents int64`)
	return strings.Split(text, "\n")
}

func TestPlanErrorSaysWhatDiffers(t *testing.T) {
	cluster := table.NewPlan("a", lines())
	long := strings.Repeat("x", 5000)
	for name, c := range map[string]struct {
		node, cluster table.Plan
		want          string
	}{
		"instances":   {node: table.NewPlan("b", lines("64", "32")), want: "the processor counter has 64 instances in the cluster and 32 instances here"},
		"a place":     {node: table.NewPlan("b", lines(", on node n1", "")), want: "the processor feed has on node n1 in the cluster and not here"},
		"a key":       {node: table.NewPlan("b", lines("key Account (string)", "key Cents (int)")), want: "the edge feed -> counter: Order has key Account (string) in the cluster and key Cents (int) here"},
		"a new field": {node: table.NewPlan("b", lines("int64", "int64, field 3 Note string")), want: "the type Order has field 3 Note string here and not in the cluster"},
		"another processor": {
			node: table.NewPlan("b", lines("processor counter = number 1,", "processor audit = number 1, 1 instance\nprocessor counter = number 2,")),
			want: "another topology: this program has the processor audit, and the cluster does not. Use",
		},
		"a renamed processor": {
			node: table.NewPlan("b", lines("processor counter", "processor counters")),
			want: "this program has the processor counters, and the cluster does not; the cluster has the processor counter, and this program does not. Use",
		},
		"another topology": {node: table.NewPlan("b", lines("bank", "shop")), want: "this program has the topology shop, and the cluster does not; the cluster has the topology bank, and"},
		"the order": {
			node: table.NewPlan("b", lines("feed = number 0", "feed = number 1", "counter = number 1", "counter = number 0")),
			want: "the processor feed has number 0 in the cluster and number 1 here; the processor counter has number 1 in the cluster and number 0 here",
		},
		"an old cluster":    {node: table.NewPlan("b", lines()), cluster: table.Plan{Hash: "old"}, want: `the cluster has the plan "old", without a description: it was founded by another version of topogen`},
		"only the hash":     {node: table.Plan{Hash: "b"}, want: `the cluster has the plan "a", and this program has the plan "b"`},
		"a damaged cluster": {node: table.NewPlan("b", lines()), cluster: table.Plan{Hash: "a", Description: strings.Join(lines("processor counter", "processor \x1b[2J"+long+"\nprocessor counter"), "\n")}, want: "the cluster has the processor ?[2Jxxx"},
	} {
		if c.cluster == (table.Plan{}) {
			c.cluster = cluster
		}
		err := error(&table.PlanError{Node: c.node, Cluster: c.cluster})
		text := err.Error()
		if !errors.Is(err, table.ErrPlan) || !strings.Contains(text, c.want) || !strings.Contains(text, "stop all nodes, delete ") {
			t.Errorf("%s: got the error\n%s\nwant ErrPlan, what to do, and\n%s", name, text, c.want)
		}
		if len(text) > 2500 {
			t.Errorf("%s: the text has %d bytes", name, len(text))
		}
	}
}

// FuzzPlanError: the description of a cluster comes from another node.
func FuzzPlanError(f *testing.F) {
	for _, text := range []string{"", strings.Repeat("\n", 5000), strings.Repeat(",  ", 5000), strings.Repeat("\xff", 5000), "type Order =" + strings.Repeat(" x, ", 5000), strings.Join(lines("64", "\xff"), "\n")} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e := &table.PlanError{Node: table.NewPlan("b", lines()), Cluster: table.Plan{Hash: text, Description: text}}
		allocated.Within(t, 200*len(text), func() {
			if n := len(e.Error()); n > 2500 {
				t.Errorf("the text has %d bytes", n)
			}
		})
	})
}

func TestLargestDescription(t *testing.T) {
	if p := table.NewPlan("a", slices.Repeat([]string{"processor p ="}, table.DescriptionBytesMax/10)); p.Description != "" {
		t.Errorf("a plan has a description of %d bytes", len(p.Description))
	}
}

// TestTableOfAnEarlierVersion reads a table that was founded without a description, and a new one.
func TestTableOfAnEarlierVersion(t *testing.T) {
	old := "\x01\x00\x01\x01" + "\x04plan" + "\x01" + "\x07counter\x40" // a transaction with a Define, as earlier versions have written it
	c, err := table.ReadCommand([]byte(old))
	if err != nil {
		t.Fatal(err)
	}
	for _, description := range []string{"", "processor counter = number 0, 64 instances"} {
		define := c.Changes[0].(table.Define)
		define.Description = description
		b, err := table.AppendCommand(nil, &table.Command{Kind: table.CommandTxn, Changes: []table.Change{define}})
		if err != nil || (string(b) == old) != (description == "") {
			t.Errorf("%q: the command has the encoding %q: %v", description, b, err)
		}
		if c, err = table.ReadCommand(b); err != nil {
			t.Fatal(err)
		}
		s := table.NewState()
		if out, _ := s.Apply(table.Revision{Term: 1, Index: 1}, 0, c); out.Code != 0 {
			t.Fatal(out)
		}
		b = s.Append(nil)
		again, err := table.ReadState(b)
		if err != nil {
			t.Fatalf("%q: %v", description, err)
		}
		if v := again.Snapshot(); v.Plan != "plan" || v.Description != description {
			t.Errorf("%q: the state is read as %q, %q", description, v.Plan, v.Description)
		}
		if description != "" {
			continue
		}
		// A snapshot of version 1 has no description, which is empty here, and no End, which is missing here.
		head, rest, _ := bytes.Cut(b[1:len(b)-4], []byte("\x04plan\x00"))
		b = slices.Concat([]byte{1}, head, []byte("\x04plan"), bytes.TrimSuffix(rest, []byte{0, 0}))
		b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
		if again, err = table.ReadState(b); err != nil || !bytes.Equal(again.Append(nil), s.Append(nil)) {
			t.Errorf("a snapshot of version 1: %v", err)
		}
	}
}
