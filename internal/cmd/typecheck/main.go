// Command typecheck checks the types of packages and their tests for other systems. It reads
// the source of all packages, including the standard library, and compiles nothing. go vet would
// take about twenty times as long for a system if the build cache is empty.
//
//	typecheck [-systems GOOS/GOARCH,...] PACKAGE...
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	systems := flag.String("systems", "linux/386,windows/amd64", "the systems as `GOOS/GOARCH`, separated by commas")
	flag.Parse()
	failed := false
	for system := range strings.SplitSeq(*systems, ",") {
		ok, err := check(os.Stderr, system, ".", flag.Args()...)
		if err != nil {
			fmt.Fprintln(os.Stderr, "typecheck:", err)
		}
		failed = failed || !ok
	}
	if failed {
		os.Exit(1)
	}
}

// check prints the errors that packages in a folder have on a system, and reports whether they
// have none.
func check(w io.Writer, system, dir string, patterns ...string) (ok bool, err error) {
	goos, goarch, ok := strings.Cut(system, "/")
	if !ok {
		return false, fmt.Errorf("%q is not a GOOS/GOARCH", system)
	}
	all, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps |
			packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesSizes,
		Dir: dir, Tests: true,
		Env: append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0"),
	}, patterns...)
	if err != nil {
		return false, fmt.Errorf("%s: %w", system, err)
	}
	if len(all) == 0 {
		return false, fmt.Errorf("%s: no package matches %s", system, strings.Join(patterns, " "))
	}
	ok = true
	packages.Visit(all, nil, func(p *packages.Package) {
		for _, e := range p.Errors {
			fmt.Fprintf(w, "%s: %v\n", system, e)
			ok = false
		}
	})
	return ok, nil
}
