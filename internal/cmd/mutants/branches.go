package main

import (
	"bytes"
	"cmp"
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
func (b *branch) inSample() bool         { return true }

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
	unchanged := baselines{}
	for _, b := range branches {
		own := unchanged.add(tests{pkg: b.pkg})
		jobs = append(jobs, job{b.pkg, b.where, func(ctx context.Context) verdict { return m.judgeBranch(ctx, b, own) }})
	}
	return jobs
}

// round is a run of tests that must notice that the compiler lacks a branch.
type round struct {
	speed    string
	packages []string
}

// rounds are all rounds. Most branches are caught in the first one, and few need all tests.
var rounds = []round{
	{"quick", []string{"./generated_test"}}, // the golden files
	{"quick", []string{"./spec/...", "./gen/..."}},
	{"quick", []string{"./generated_test/..."}},
	{"landing", []string{"./spec/...", "./gen/...", "./generated_test/..."}},
}

// roundLimit limits the time of a test program in a round.
const roundLimit = 10 * time.Minute

// checkRounds returns an error if the tests of a round fail with all branches: they would
// catch each branch.
func (m *module) checkRounds(ctx context.Context, rounds []round) error {
	dir, err := m.write(nil)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, r := range rounds {
		if out, err := m.runRound(ctx, r, dir); err != nil {
			return fmt.Errorf("the tests %s fail without a change: %w\n%s", strings.Join(r.packages, " "), err, shorten(out))
		}
	}
	return nil
}

// runRound runs the tests of a round with the overlay in dir.
func (m *module) runRound(ctx context.Context, r round, dir string) (out []byte, err error) {
	args := []string{"test", "-vet=off", "-failfast", "-timeout", roundLimit.String(), "-overlay", filepath.Join(dir, overlayFile)}
	test := exec.CommandContext(ctx, "go", append(args, r.packages...)...)
	test.Dir = m.root
	test.Env = append(environment(tests{}, ""), "TOPOGEN_SPEED="+r.speed)
	return test.CombinedOutput()
}

// judgeBranch runs the tests of the package, if it has any, and then all rounds until a test fails.
func (m *module) judgeBranch(ctx context.Context, b *branch, own *baseline) verdict {
	if files, _ := filepath.Glob(filepath.Join(m.root, b.pkg, "*_test.go")); len(files) > 0 {
		if err := own.check(ctx, m); err != nil {
			return verdict{failed, err.Error()}
		}
		switch got, err := m.try(ctx, b.changed, tests{pkg: b.pkg}, testLimit); {
		case err != nil:
			return verdict{failed, err.Error()}
		case got.failed:
			return verdict{caught, got.test}
		}
	}
	dir, err := m.write(b.changed)
	if err != nil {
		return verdict{failed, err.Error()}
	}
	defer os.RemoveAll(dir)
	for _, round := range rounds {
		out, err := m.runRound(ctx, round, dir)
		if err == nil {
			continue
		}
		if failure.Match(out) {
			return verdict{caught, cmp.Or(failedTest(out), "a panic")}
		}
		return verdict{failed, fmt.Sprintf("%v\n%s", err, shorten(out))}
	}
	return verdict{notCaught, "no test needs this branch: add a case, or remove the branch"}
}
