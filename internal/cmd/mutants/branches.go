package main

import (
	"bytes"
	"context"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// branch is a disabled branch: the condition of an if is false, or the case of a switch is
// empty.
type branch struct {
	pkg, where string
	changed    overlay
}

func (b *branch) id() (pkg, name string) { return b.pkg, b.where }
func (b *branch) canBeCaught() bool      { return true }

// branches disables each branch in the files of some packages.
func (m *module) branches(packages []string) (all []*branch, err error) {
	for _, pkg := range packages {
		if pkg, err = m.relative(pkg); err != nil {
			return nil, err
		}
		files, err := filepath.Glob(filepath.Join(m.root, pkg, "*.go"))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			for n := 0; ; n++ {
				line, source, err := disable(file, n)
				if err != nil {
					return nil, err
				}
				if line == 0 {
					break
				}
				where := fmt.Sprintf("%s:%d", filepath.Base(file), line)
				all = append(all, &branch{pkg, where, overlay{file: source}})
			}
		}
	}
	return all, nil
}

// disable disables the n-th branch of a file. Without such a branch, the line is 0.
func disable(file string, n int) (line int, source string, err error) {
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, nil, parser.ParseComments)
	if err != nil {
		return 0, "", err
	}
	ast.Inspect(parsed, func(node ast.Node) bool {
		var disable func()
		switch node := node.(type) {
		case *ast.IfStmt:
			disable = func() {
				node.Cond = &ast.BinaryExpr{X: &ast.ParenExpr{X: node.Cond}, Op: token.LAND, Y: ast.NewIdent("false")}
			}
		case *ast.CaseClause:
			if len(node.Body) > 0 && !ends(node.Body) {
				disable = func() {
					node.Body = []ast.Stmt{&ast.IfStmt{Cond: ast.NewIdent("false"), Body: &ast.BlockStmt{List: node.Body}}}
				}
			}
		}
		if disable == nil {
			return true
		}
		if n == 0 {
			line = fset.Position(node.Pos()).Line
			disable()
		}
		n--
		return true
	})
	var out bytes.Buffer
	err = format.Node(&out, fset, parsed)
	return line, out.String(), err
}

// ends reports whether a body ends the function or continues in the next case. Without such
// a body the function may not compile.
func ends(body []ast.Stmt) bool {
	switch last := body[len(body)-1].(type) {
	case *ast.ReturnStmt:
		return true
	case *ast.BranchStmt:
		return last.Tok == token.FALLTHROUGH
	case *ast.ExprStmt:
		call, _ := last.X.(*ast.CallExpr)
		if call == nil {
			return false
		}
		name, _ := call.Fun.(*ast.Ident)
		return name != nil && name.Name == "panic"
	default:
		return false
	}
}

func (m *module) branchJobs(branches []*branch) (jobs []job) {
	for _, b := range branches {
		jobs = append(jobs, job{b.pkg, b.where, func(ctx context.Context) verdict { return m.judgeBranch(ctx, b) }})
	}
	return jobs
}

// rounds are the tests that must notice that the compiler lacks a branch. Most branches are
// caught in the first round, and few need all tests.
var rounds = []struct {
	speed    string
	packages []string
}{
	{"quick", []string{"./generated_test"}}, // the golden files
	{"quick", []string{"./spec/...", "./gen/..."}},
	{"quick", []string{"./generated_test/..."}},
	{"landing", []string{"./spec/...", "./gen/...", "./generated_test/..."}},
}

// roundLimit limits the time of a test program in a round.
const roundLimit = 10 * time.Minute

// judgeBranch runs the tests of the package, and then all rounds until a test fails.
func (m *module) judgeBranch(ctx context.Context, b *branch) verdict {
	switch got, err := m.try(ctx, b.changed, tests{pkg: b.pkg}, testLimit); {
	case err != nil:
		return verdict{failed, err.Error()}
	case got.failed:
		return verdict{caught, got.test}
	}
	dir, err := m.write(b.changed)
	if err != nil {
		return verdict{failed, err.Error()}
	}
	defer os.RemoveAll(dir)
	for _, round := range rounds {
		args := []string{"test", "-vet=off", "-failfast", "-timeout", roundLimit.String(), "-overlay", filepath.Join(dir, overlayFile)}
		test := exec.CommandContext(ctx, "go", append(args, round.packages...)...)
		test.Dir = m.root
		test.Env = append(environment(0), "TOPOGEN_SPEED="+round.speed)
		out, err := test.CombinedOutput()
		if err == nil {
			continue
		}
		if name := failedTest(out); name != "" {
			return verdict{caught, name}
		}
		return verdict{failed, fmt.Sprintf("%v\n%s", err, shorten(out))}
	}
	return verdict{notCaught, "no test needs this branch: add a case, or remove the branch"}
}
