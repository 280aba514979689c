package bind

import (
	"context"
	"path/filepath"
	"testing"

	"golang.org/x/tools/txtar"
)

// TestDone checks that Done releases syntax and types of a package, unless another package
// imports it, even one without a topology.
func TestDone(t *testing.T) {
	dir := newModule(t)
	var inputs []Input
	write(t, filepath.Join(dir, "between", "between.go"), "package between\n\nimport \"example.com/c\"\n\ntype M struct{ c.M }\n")
	for _, name := range []string{"a", "b", "c", "d"} {
		text := "-- topology.yml --\nversion: 1\nname: " + name + "\nprocessors: {feed: {}, sink: {}}\nedges: [feed -> sink: M]\n" +
			"-- x.go --\npackage " + name + "\n\nfunc (Feed) Ping(out *FeedSender) error { return nil }\n\nfunc (Sink) ReceiveM(m M) {}\n\ntype Feed struct{}\n\ntype Sink struct{}\n"
		switch name {
		case "b":
			text += "-- m.go --\npackage b\n\nimport \"example.com/a\"\n\ntype M struct{ a.M }\n"
		case "d":
			text += "-- m.go --\npackage d\n\nimport \"example.com/between\"\n\ntype M struct{ between.M }\n"
		default:
			text += "-- m.go --\npackage " + name + "\n\ntype M struct{}\n"
		}
		text += "-- x_test.go --\npackage " + name + "\n\nvar tested = true\n"
		archive := txtar.Parse([]byte(text))
		unpack(t, archive, filepath.Join(dir, name))
		inputs = append(inputs, Input{Topology: parse(t, archive), Dir: filepath.Join(dir, name)})
	}
	results, err := Bind(context.Background(), inputs, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		if len(r.Findings) > 0 {
			t.Fatal(said(r.Findings))
		}
		path, root, l := r.root.path, r.root, r.loader
		r.Done()
		held := l.results[path] != nil && root.source.files != nil
		if dropped := l.results[path] == nil && root.source.files == nil && root.source.excluded == nil; held == dropped || held != (i == 0 || i == 2) {
			t.Errorf("%s: held %t", path, held)
		}
	}
	results[1].Done() // again
}
