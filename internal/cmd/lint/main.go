package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// A check is a rule for the whole repository.
type check struct {
	name string
	run  func(*repo) ([]finding, error)
}

var checks = []check{
	{"prose", prose},
	{"source", source},
	{"links", links},
	{"index", index},
	{"named", named},
	{"shown", shown},
	{"idents", idents},
	{"imports", imports},
	{"linked", linked},
	{"promoted", promoted},
	{"unused", unused},
	{"rapids", rapids},
	{"long", long},
	{"decoders", decoders},
}

// A finding is a mistake, with what to do about it.
type finding struct {
	file    string // relative to the root, with slashes
	line    int    // 0: the whole file
	message string
}

func (f finding) String() string {
	if f.line == 0 {
		return f.file + ": " + f.message
	}
	return fmt.Sprintf("%s:%d: %s", f.file, f.line, f.message)
}

func main() {
	debug.SetGCPercent(400) // saves a third of the time; the peak of memory rises from 0.9 to 1.1 GB
	verbose := flag.Bool("v", false, "print the time and the figures of each check")
	names := flag.String("run", "", "run only the checks whose names match this `regexp`")
	flag.Parse()
	root, err := rootOf(".")
	found := 0
	if err == nil {
		found, err = run(os.Stdout, newRepo(root), *names, *verbose)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "lint:", err)
		os.Exit(2)
	}
	if found > 0 {
		fmt.Println(plural(found, "finding"))
		os.Exit(1)
	}
}

// plural is a number and a noun.
func plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// run runs the selected checks, prints their findings, and returns how many there are.
func run(out io.Writer, r *repo, names string, verbose bool) (found int, err error) {
	selected, err := regexp.Compile(names)
	if err != nil {
		return 0, fmt.Errorf("-run: %w", err)
	}
	ran := 0
	for _, c := range checks {
		if !selected.MatchString(c.name) {
			continue
		}
		ran++
		start := time.Now()
		r.examined = 0
		findings, err := c.run(r)
		if err == nil && r.examined == 0 {
			err = errors.New("nothing was checked")
		}
		if err != nil {
			return 0, fmt.Errorf("%s: %w", c.name, err)
		}
		found += len(findings)
		slices.SortFunc(findings, func(a, b finding) int {
			return cmp.Or(strings.Compare(a.file, b.file), a.line-b.line, strings.Compare(a.message, b.message))
		})
		for _, f := range findings {
			fmt.Fprintf(out, "%v (%s)\n", f, c.name)
		}
		if verbose {
			fmt.Fprintf(out, "%-9s %5.2f s\n%s", c.name, time.Since(start).Seconds(), r.takeNotes())
		}
	}
	if ran == 0 {
		return 0, fmt.Errorf("no check matches %q", names)
	}
	return found, nil
}

// rootOf returns the folder of this module, which contains dir.
func rootOf(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(text), "module "+module+"\n") {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("run this command in a checkout of " + module)
		}
		dir = filepath.Dir(dir)
	}
}
