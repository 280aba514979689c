package bind

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/topogen/topogen/gen/plan"
)

// TestSyntaxNeverDiffers binds variants of one package in both ways. Where the
// syntax alone decides, it decides as the types do; bySyntax says where it has to
// decide, lest it be of no use.
func TestSyntaxNeverDiffers(t *testing.T) {
	if os.Getenv("CI") == "" {
		t.Skip("takes long: set CI")
	}
	cases := []struct {
		name, code string
		bySyntax   bool
	}{
		{"plain", `type M struct{ Key string }; type Sink struct{}; func (*Sink) ReceiveM(*M) {}`, true},
		{"time", `import "time"; type M struct{ Key string; At time.Time; D time.Duration }; type Sink struct{ t time.Timer }; func (*Sink) ReceiveM(*M) {}`, true},
		{"renamed import", `import c "context"; type M struct{ Key string }; type Sink struct{}; func (*Sink) ReceiveM(c.Context, M) {}`, true},
		{"dot import", `import . "context"; type M struct{ Key string }; type Sink struct{}; func (*Sink) ReceiveM(Context, M) {}`, true},
		{"not the context", `import context "text/template/parse"; type M struct{ Key string }; type Sink struct{}; func (*Sink) Init(context.Node) error { return nil }; func (*Sink) ReceiveM(M) {}`, false},
		{"foreign field", `import "net/url"; type M struct{ Key string; U url.URL }; type Sink struct{}; func (*Sink) ReceiveM(*M) {}`, false},
		{"foreign field behind a pointer", `import "net/url"; type M struct{ Key string; P *int; U url.URL }; type Sink struct{}; func (*Sink) ReceiveM(*M) {}`, true},
		{"foreign key", `import "net/http"; type M struct{ Key http.ConnState }; type Sink struct{}; func (*Sink) ReceiveM(*M) {}`, false},
		{"key of a time", `import "time"; type M struct{ Key time.Month }; type Sink struct{}; func (*Sink) ReceiveM(*M) {}`, true},
		{"embedded mutex", `import "sync"; type M struct{ Key string }; type Sink struct{ sync.Mutex }; func (*Sink) ReceiveM(*M) {}`, false},
		{"promoted foreign methods", `import "database/sql"; type M struct{ Key string }; type Sink struct{ *sql.DB }; func (*Sink) ReceiveM(*M) {}`, false},
		{"promoted foreign key", `import "net/url"; type M struct{ url.URL; Other string }; type Sink struct{}; func (*Sink) ReceiveM(*M) {}`, false},
		{"own embedded", `type base struct{}; func (base) ReceiveM(M) error { return nil }; type M struct{ Key string }; type Sink struct{ *base }`, true},
		{"foreign deeper down", `import "net/url"; type mid struct{ url.URL }; type M struct{ Key string }; type Sink struct{ mid }; func (*Sink) ReceiveM(*M) {}`, false},
		{"own error", `type error interface{ Error() string }; type M struct{ Key string }; type Sink struct{}; func (*Sink) ReceiveM(*M) error { return nil }`, false},
		{"own string", `type string = int; type M struct{ Key string }; type Sink struct{}; func (*Sink) ReceiveM(*M) {}`, true},
		{"alias of a foreign type", `import "net/http"; type M = http.Cookie; type Sink struct{}; func (*Sink) ReceiveM(*M) {}`, false},
		{"declared as a foreign type", `import "net/url"; type M url.URL; type Sink struct{}; func (*Sink) ReceiveM(*M) {}`, false},
		{"generic", `type Box[T any] struct{ Key T }; type M = Box[string]; type Sink struct{}; func (*Sink) ReceiveM(*Box[string]) {}`, true},
		{"generic of a foreign type", `import "net/url"; type Box[T any] struct{ Key string; V T }; type M = Box[url.URL]; type Sink struct{}; func (*Sink) ReceiveM(*M) {}`, false},
		{"foreign constraint", `import "cmp"; type Box[T cmp.Ordered] struct{ Key T }; type M = Box[string]; type Sink struct{}; func (*Sink) ReceiveM(*M) {}`, false},
		{"foreign constraint below", `import "cmp"; type C interface{ ~string; cmp.Ordered }; type Box[T C] struct{ Key T }; type M = Box[string]; type Sink struct{}; func (*Sink) ReceiveM(*M) {}`, false},
		{"own constraint", `type C interface{ ~string | ~[]byte }; type Box[T C] struct{ Key T }; type M = Box[string]; type Sink struct{}; func (*Sink) ReceiveM(*M) {}`, true},
		{"interface message", `type M interface{ Key() string }; type Sink struct{}; func (*Sink) ReceiveM(M) {}`, true},
		{"foreign interface message", `import "fmt"; type M interface{ fmt.Stringer; Key() string }; type Sink struct{}; func (*Sink) ReceiveM(M) {}`, false},
		{"key method of a foreign type", `import "net/url"; type M struct{ u *url.URL }; func (m *M) Key() url.Values { return nil }; type Sink struct{}; func (*Sink) ReceiveM(M) {}`, false},
		{"arrays by a foreign constant", `import "math"; type M struct{ Key string; A [math.MaxInt8]byte }; type Sink struct{}; func (*Sink) ReceiveM(M) {}`, false},
		{"handler twice", `type M struct{ Key string }; type Sink struct{}; func (*Sink) ReceiveM(M) {}; func (*Sink) ReceiveM(*M) {}`, true},
		{"type twice", `type M struct{ Key string }; type Sink struct{}; type M int; func (*Sink) ReceiveM(M) {}`, true},
		{"unknown import", `import "example.com/none"; type M struct{ Key string; p *none.T }; type Sink struct{ n none.T }; func (*Sink) ReceiveM(M) {}`, false},
		{"unsafe", `import "unsafe"; type M struct{ Key uintptr; P unsafe.Pointer }; type Sink struct{}; func (*Sink) ReceiveM(M) {}`, true},
		{"foreign optional method", `import "io"; type M struct{ Key string }; type Sink struct{}; func (*Sink) ReceiveM(M) {}; func (*Sink) Init(io.Reader) error { return nil }`, false},
		{"warning", `type M struct{ Key string }; type Sink struct{}; func (*Sink) ReceiveM(M) {}; func (*Sink) ReceiveN(M) {}`, false},
		{"method of a tick", `import "github.com/topogen/topogen/runtime/topo"; type M struct{ Tick topo.Tick; Key uint8 }; type Sink struct{}; func (*Sink) ReceiveM(M) {}`, true},
	}
	const topology = "-- topology.yml --\nversion: 1\nname: tiers\nprocessors: {feed: {}, sink: {instances: 2}}\nedges:\n  - feed -> sink: {message: M, key: Key}\n"
	const feed = "package tiers\n\ntype Feed struct{}\n\nfunc (*Feed) Ping(out *FeedSender) error { return nil }\n"
	dir := newModule(t)
	var inputs []Input
	for i, c := range cases {
		folder := filepath.Join(dir, fmt.Sprintf("c%d", i))
		write(t, filepath.Join(folder, "feed.go"), feed)
		write(t, filepath.Join(folder, "code.go"), "package tiers; "+c.code)
		inputs = append(inputs, Input{Topology: parse(t, txtar.Parse([]byte(topology))), Dir: folder})
	}
	results, err := Bind(context.Background(), inputs, Options{Types: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range cases {
		s := bySyntax(t, inputs[i])
		switch r := results[i]; {
		case s == nil && c.bySyntax:
			t.Errorf("%s: the syntax does not suffice", c.name)
		case s != nil && !c.bySyntax:
			t.Errorf("%s: the syntax suffices", c.name)
		case s == nil:
		case len(r.Findings) > 0:
			t.Errorf("%s: by types only: %s", c.name, said(r.Findings))
		case plan.Hash(s.Plan) != plan.Hash(r.Plan):
			t.Errorf("%s: (-types +syntax)\n%s", c.name, cmp.Diff(r.Plan, s.Plan))
		}
	}
}
