package bind

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/spec"
)

// chain writes a package with n processors in a row and returns its topology.
func chain(t testing.TB, dir string, n int) *spec.Topology {
	t.Helper()
	var yml, code strings.Builder
	yml.WriteString("version: 1\nname: chain\nprocessors:\n")
	code.WriteString("package chain\n\nimport (\n\t\"context\"\n\t\"fmt\"\n\t\"net/http\"\n\t\"time\"\n)\n\nvar client http.Client\n\ntype M struct {\n\tAccount string\n\tAt time.Time\n}\n")
	for i := range n {
		fmt.Fprintf(&yml, "  p%d: {instances: 4}\n", i)
		fmt.Fprintf(&code, "\ntype P%d struct{ n int }\n\nfunc (p *P%[1]d) Init(ctx context.Context) error { return nil }\n", i)
		switch i {
		case 0:
			code.WriteString("\nfunc (p *P0) Ping(out *P0Sender) error { return out.SendM(M{}) }\n")
		case n - 1:
			fmt.Fprintf(&code, "\nfunc (p *P%d) ReceiveM(m *M) error { return nil }\n", i)
		default:
			fmt.Fprintf(&code, "\nfunc (p *P%d) ReceiveM(ctx context.Context, m *M, out *P%[1]dSender) error {\n\tfmt.Sprint(p.n)\n\tout.SendM(*m)\n\treturn nil\n}\n", i)
		}
	}
	yml.WriteString("edges:\n")
	for i := range n - 1 {
		fmt.Fprintf(&yml, "  - p%d -> p%d: {message: M, key: Account}\n", i, i+1)
	}
	write(t, filepath.Join(dir, "chain.go"), code.String())
	topology, findings := spec.Parse("topology.yml", []byte(yml.String()))
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	return topology
}

// TestManyFindings bounds the time for the worst case: a large topology in which all names
// are undeclared and misspelt.
func TestManyFindings(t *testing.T) {
	n := speed.Pick(t, 200, 3000, 3000)
	var yml, code strings.Builder
	yml.WriteString("version: 1\nname: small\nprocessors:\n")
	code.WriteString("package small\n")
	for i := range n {
		fmt.Fprintf(&yml, "  processor-%d: {}\n", i)
		fmt.Fprintf(&code, "type Processr%d struct{}; type Mesage%[1]d struct{}\n", i)
	}
	yml.WriteString("edges:\n")
	for i := range 2 * n {
		fmt.Fprintf(&yml, "  - processor-%d -> processor-%d: Message%d\n", i%n, (7*i+1+i/n)%n, i)
	}
	topology, _ := spec.Parse("topology.yml", []byte(yml.String()))
	dir := newFolder(t)
	write(t, filepath.Join(dir, "many.go"), code.String())
	start := time.Now()
	results, err := Bind(context.Background(), []Input{{Topology: topology, Dir: dir}}, Options{})
	if err != nil || len(results[0].Findings) != 3*n {
		t.Fatalf("%v, %d findings", err, len(results[0].Findings))
	}
	if took := time.Since(start); took > 20*time.Second { // 0.5 s on two idle cores, which a test seldom has
		t.Errorf("%v", took)
	}
}

// TestManyUnknownTypes bounds the time for handlers with parameters of undeclared types.
func TestManyUnknownTypes(t *testing.T) {
	n := speed.Pick(t, 200, 2000, 2000)
	var yml, code strings.Builder
	yml.WriteString("version: 1\nname: small\nprocessors:\n  feed: {}\n")
	code.WriteString("package small\ntype Feed struct{}\nfunc (*Feed) Ping(out *FeedSender) error { return nil }\n")
	edges := "edges:\n"
	for i := range n {
		fmt.Fprintf(&yml, "  p%d: {}\n", i)
		edges += fmt.Sprintf("  - feed -> p%d: M%[1]d\n", i)
		fmt.Fprintf(&code, "type P%d struct{}; type M%[1]d struct{}\nfunc (*P%[1]d) ReceiveM%[1]d(m M%[1]d, x T%[1]d) {}\n", i)
	}
	for i := range n {
		fmt.Fprintf(&code, "type T%d Missing%[1]d\n", i)
	}
	topology, _ := spec.Parse("topology.yml", []byte(yml.String()+edges))
	dir := newFolder(t)
	write(t, filepath.Join(dir, "many.go"), code.String())
	start := time.Now()
	results, err := Bind(context.Background(), []Input{{Topology: topology, Dir: dir}}, Options{})
	if err != nil || len(results[0].Findings) != n {
		t.Fatalf("%v, %d findings", err, len(results[0].Findings))
	}
	if took := time.Since(start); took > 20*time.Second { // 0.4 s on two idle cores, and a minute if each error is looked for in each file
		t.Errorf("%v", took)
	}
}

func BenchmarkBind(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		dir := filepath.Join(newModule(b), "chain")
		in := Input{Topology: chain(b, dir, n), Dir: dir}
		b.Run(fmt.Sprintf("processors=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				results, err := Bind(context.Background(), []Input{in}, Options{})
				if err != nil || !results[0].plan().Bound {
					b.Fatalf("%v, %v", err, results[0].Findings)
				}
			}
		})
		b.Run(fmt.Sprintf("processors=%d/verify", n), func(b *testing.B) {
			for b.Loop() {
				results, err := Bind(context.Background(), []Input{in}, Options{})
				if err != nil {
					b.Fatal(err)
				}
				if v := verify(b, results[0], nil); len(v.Own)+len(v.User) > 0 {
					b.Fatal(v)
				}
			}
		})
	}
}
