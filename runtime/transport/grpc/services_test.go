package grpc

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/transport/certs"
)

// TestServices lists the services of the runtime, and where gRPC listens and dials. The
// transport gives all calls of its servers an end, see TestCallsEndWithTheirCertificates,
// and refuses wrong callers. Before you add a line here, decide who may call the method,
// set its CallLimit, and check that its messages fit the limits of guests.
func TestServices(t *testing.T) {
	want := []string{
		"cluster.Connect", "cluster.Places", "cluster.Remove", "cluster.Show",
		"grpc.Carry",
		"raft.Backup", "raft.Call", "raft.Operate",
	}
	wantCalls := []string{"grpc/operator.go NewClient", "grpc/server.go NewServer", "grpc/stream.go NewClient"}
	constants := map[string]string{}
	var methods []ast.Expr
	of := map[ast.Expr]string{} // the package of a method
	var calls []string
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"google.golang.org/grpc"` }) {
			return nil
		}
		folder := filepath.Base(filepath.Dir(path))
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for i, v := range n.Values {
					if text, ok := literal(v); ok {
						constants[folder+"."+n.Names[i].Name] = text
					}
				}
			case *ast.CallExpr:
				if s, ok := n.Fun.(*ast.SelectorExpr); ok && (s.Sel.Name == "NewServer" || s.Sel.Name == "NewClient") {
					calls = append(calls, folder+"/"+filepath.Base(path)+" "+s.Sel.Name)
				}
			case *ast.CompositeLit:
				if s, ok := n.Type.(*ast.SelectorExpr); ok && s.Sel.Name == "ServiceDesc" {
					for _, m := range methodsOf(n) {
						methods, of[m] = append(methods, m), folder
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, m := range methods {
		name, ok := literal(m)
		if constant, isName := m.(*ast.Ident); isName {
			name, ok = constants[of[m]+"."+constant.Name]
		}
		if !ok {
			t.Fatalf("the name of a method in package %s must be a string or a constant", of[m])
		}
		found[of[m]+"."+name] = true
	}
	if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, want) {
		t.Errorf("the methods of the runtime are %q, want %q", got, want)
	}
	if slices.Sort(calls); !slices.Equal(calls, wantCalls) {
		t.Errorf("gRPC listens and dials in %q, want %q", calls, wantCalls)
	}
}

func literal(e ast.Expr) (string, bool) {
	l, ok := e.(*ast.BasicLit)
	if !ok {
		return "", false
	}
	text, err := strconv.Unquote(l.Value)
	return text, err == nil
}

// methodsOf returns the names of the methods and streams of a description.
func methodsOf(service *ast.CompositeLit) (names []ast.Expr) {
	ast.Inspect(service, func(n ast.Node) bool {
		if kv, ok := n.(*ast.KeyValueExpr); ok {
			if key, ok := kv.Key.(*ast.Ident); ok && (key.Name == "MethodName" || key.Name == "StreamName") {
				names = append(names, kv.Value)
			}
		}
		return true
	})
	return names
}

// TestConnectionsExpire: either end closes a connection when a certificate has expired, also
// if the other end does not.
func TestConnectionsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		defer there.Close()
		began := time.Now()
		i := identity{id: certs.ID{Node: "n1"}, expires: began.Add(time.Hour)}
		if _, err := i.connection(here).Read(make([]byte, 1)); err == nil || time.Since(began) != time.Hour+expiredGrace {
			t.Errorf("the connection has ended after %v: %v", time.Since(began), err)
		}
	})
}
