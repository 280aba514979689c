// Mutate disables the branches of the compiler one by one and reports the branches that no
// test needs: each condition of an if becomes false, each case of a switch becomes empty. It
// changes no file; mutants are built with an overlay.
//
//	go run ./generated_test/mutate [-every N] [-offset K] ./gen/emit ./gen/plan ./spec
//
// A survivor is a branch without a test case: write the case, or remove the branch.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// tests are the packages whose tests must fail with a mutant.
var tests = []string{"./spec/...", "./gen/...", "./generated_test/..."}

func main() {
	log.SetFlags(0)
	every := flag.Int("every", 1, "try one mutant of `N`")
	offset := flag.Int("offset", 0, "begin with the `K`-th")
	flag.Parse()
	if flag.NArg() == 0 {
		log.Fatal("usage: mutate [-every N] [-offset K] FOLDER…")
	}
	var all []mutant
	for _, dir := range flag.Args() {
		found, err := mutants(dir)
		if err != nil {
			log.Fatal(err)
		}
		all = append(all, found...)
	}
	survived, tried := 0, 0
	for i := *offset; i < len(all); i += *every {
		tried++
		caught, err := all[i].caught()
		if err != nil {
			log.Fatal(err)
		}
		if !caught {
			survived++
			fmt.Printf("survived: %s\n", all[i].where)
		}
		fmt.Fprintf(os.Stderr, "\r%d of %d, %d survived ", i+1, len(all), survived)
	}
	fmt.Fprintln(os.Stderr)
	fmt.Printf("%d branches, %d switched off, %d survived\n", len(all), tried, survived)
	if survived > 0 {
		os.Exit(1)
	}
}

// mutant is a file with one disabled branch.
type mutant struct {
	path   string // absolute
	where  string
	source []byte
}

// mutants makes the mutants of the files in a folder, without tests.
func mutants(dir string) ([]mutant, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var all []mutant
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		for n := 0; ; n++ {
			m, err := nth(path, n)
			if err != nil {
				return nil, err
			}
			if m == nil {
				break
			}
			all = append(all, *m)
		}
	}
	return all, nil
}

// nth disables the n-th branch of a file; nil if the file has fewer.
func nth(path string, n int) (*mutant, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	var at token.Pos
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.IfStmt:
			if n == 0 {
				at = node.Cond.Pos()
				node.Cond = &ast.BinaryExpr{X: &ast.ParenExpr{X: node.Cond}, Op: token.LAND, Y: ast.NewIdent("false")}
			}
			n--
		case *ast.CaseClause:
			if len(node.Body) > 0 && !returns(node.Body) {
				if n == 0 {
					at = node.Pos()
					node.Body = []ast.Stmt{&ast.IfStmt{Cond: ast.NewIdent("false"), Body: &ast.BlockStmt{List: node.Body}}}
				}
				n--
			}
		}
		return true
	})
	if at == token.NoPos {
		return nil, nil
	}
	var out bytes.Buffer
	if err := format.Node(&out, fset, file); err != nil {
		return nil, err
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	return &mutant{abs, fset.Position(at).String(), out.Bytes()}, nil
}

// returns reports whether a body ends the function. Without such a body the function would not
// compile, which proves nothing.
func returns(body []ast.Stmt) bool {
	_, ok := body[len(body)-1].(*ast.ReturnStmt)
	return ok
}

// caught reports whether a test fails, or the compiler refuses the mutant.
func (m *mutant) caught() (bool, error) {
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "mutant.go")
	if err := os.WriteFile(file, m.source, 0o600); err != nil {
		return false, err
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {m.path: file}})
	if err != nil {
		return false, err
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		return false, err
	}
	args := append([]string{"test", "-failfast", "-timeout", "5m", "-overlay", list}, tests...)
	for _, ci := range []string{"CI=", "CI=true"} { // runs long tests only if the short ones pass
		test := exec.Command("go", args...)
		test.Env = append(os.Environ(), ci)
		err := test.Run()
		if _, failed := err.(*exec.ExitError); failed {
			return true, nil
		} else if err != nil {
			return false, err
		}
	}
	return false, nil
}
