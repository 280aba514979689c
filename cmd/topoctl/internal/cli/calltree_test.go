package cli

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

const zero = 1_795_392_000_000 // 2026-11-23

func called(id, parent string, more ...string) protocol.Promise {
	p := protocol.Promise{ID: id, State: protocol.Resolved, CreatedAt: zero, SettledAt: new(int64(zero + 12)), Tags: map[string]string{protocol.TagParent: parent}}
	for i := 0; i+1 < len(more); i += 2 {
		p.Tags[more[i]] = more[i+1]
	}
	return p
}

func encoded(json string) *string { return new(base64.StdEncoding.EncodeToString([]byte(json))) }

func TestCallTree(t *testing.T) {
	const target = "poll://any@shop"
	root := called("order-17", "order-17", protocol.TagTarget, target)
	root.Param.Data = encoded(`{"func":"checkout","args":[17],"version":1}`)
	root.State, root.SettledAt = protocol.Pending, nil
	failed := called("order-17:2", "order-17", tagStep, "charge")
	failed.State, failed.Value.Data = protocol.Rejected, encoded(`{"__type":"error","name":"Error","message":"card declined\nsee log"}`)
	late := called("order-17:9", "order-17", protocol.TagTarget, target)
	late.State, late.SettledAt = protocol.RejectedTimeout, new(int64(zero+7_500_000))
	late.Param.Data = encoded(`{"func":"ship\u001b[2J"}`)
	typescript := called("order-17:9.1", "order-17:9", protocol.TagScope, "local")
	typescript.Param.Data = encoded(`{"func":"pack"}`)
	list := []protocol.Promise{
		called("order-17:10", "order-17", protocol.TagTimer, "true", protocol.TagTarget, target),
		late, typescript, failed, root,
		called("order-17:1", "order-17", tagStep, "reserve"),
		called("lost", "nowhere"),
		called("ring-1", "ring-2"), called("ring-2", "ring-1"),
	}
	tree, rest := callTree(list, "order-17")
	tree.task = &protocol.Task{State: protocol.TaskAcquired, Version: 2, PID: new("p-9")}
	var b bytes.Buffer
	if err := tree.draw(zero + 61_400).print(&b); err != nil {
		t.Fatal(err)
	}
	if got, want := b.String(), `
order-17            call checkout     pending    1m1s  acquired by p-9, version 2
├─ order-17:1       step reserve      resolved   12ms
├─ order-17:2       step charge       rejected   12ms  card declined
├─ order-17:9       call ship\x1b[2J  timed out  2h5m
│  └─ order-17:9.1  step pack         resolved   12ms
└─ order-17:10      sleep             resolved   12ms
`[1:]; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	var others []string
	for _, p := range rest {
		others = append(others, p.ID)
	}
	if want := []string{"lost", "ring-1", "ring-2"}; !slices.Equal(others, want) {
		t.Errorf("not in the tree: %q, want %q", others, want)
	}
	objects := newCallObjects(tree, false)
	if len(objects) != 6 || objects[4].ID != "order-17:9.1" || objects[4].Depth != 2 || objects[0].Task.Version != 2 {
		t.Errorf("in JSON: %+v", objects)
	}
}

// A client can write any parents: the root below itself, and chains of any length.
func TestCallTreeOfHostileTags(t *testing.T) {
	list := []protocol.Promise{called("a", "b"), called("b", "a")}
	if tree, rest := callTree(list, "a"); len(tree.rows()) != 2 || len(rest) != 0 {
		t.Errorf("a ring with its root: %d rows, %d others", len(tree.rows()), len(rest))
	}
	list = []protocol.Promise{called("0", "")}
	for i := range 10_000 {
		list = append(list, called(fmt.Sprint(i+1), fmt.Sprint(i)))
	}
	tree, _ := callTree(list, "0")
	rows := tree.draw(zero)
	if len(rows) != 10_001 || len(rows[10_000][0]) > 200 {
		t.Errorf("%d rows, the last is %q", len(rows), rows[len(rows)-1][0])
	}
}

func TestKindOfPromise(t *testing.T) {
	for want, tags := range map[string][]string{
		"sleep":            {protocol.TagTimer, "true"},
		"retry":            {protocol.TagTimer, "true", tagStep, "durable.Retry"},
		"now":              {tagStep, "durable.Now"},
		"version Discount": {tagStep, "durable.Version Discount"},
		"call f":           {protocol.TagTarget, "poll://any@shop", tagStep, "durable.Call f"},
		"step durable":     {tagStep, "durable"},
		"step f":           {protocol.TagScope, "local"},
		"promise":          nil,
	} {
		p := called("a", "", tags...)
		p.Param.Data = encoded(`{"func":"f"}`)
		if got := kindOfPromise(&p); got != want {
			t.Errorf("tags %q: %q, want %q", tags, got, want)
		}
	}
}

func TestCompareNumbered(t *testing.T) {
	sorted := []string{"", "a", "a:1", "a:2", "a:2.1", "a:2.10", "a:2~2", "a:10", "a:10x", "a:99999999999999999999", "a:100000000000000000000", "b"}
	for i, a := range sorted {
		for j, b := range sorted {
			if got := compareNumbered(a, b); (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("compareNumbered(%q, %q) = %d", a, b, got)
			}
		}
	}
	shuffled := slices.Clone(sorted)
	slices.Reverse(shuffled)
	slices.SortFunc(shuffled, compareNumbered)
	if !slices.Equal(shuffled, sorted) {
		t.Errorf("sorted: %s", strings.Join(shuffled, " "))
	}
}
