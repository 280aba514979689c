package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// check checks, without a build, that each mutant applies, that its name is unique, and
// that its tests exist.
func (m *module) check(lists []*list, out io.Writer) (ok bool) {
	ok = true
	fail := func(format string, args ...any) {
		ok = false
		fmt.Fprintf(out, format+"\n", args...)
	}
	first := map[string]string{}
	names := map[string][]string{}
	n := 0
	for _, l := range lists {
		for _, mutant := range l.mutants {
			n++
			if _, err := mutant.apply(m.root); err != nil {
				fail("%v", err)
			}
			if earlier, again := first[mutant.name]; again {
				fail("%s: the name %s must be unique, and is also in %s", mutant.where, mutant.name, earlier)
			}
			first[mutant.name] = mutant.where
			pkg := mutant.tests.pkg
			if names[pkg] == nil {
				names[pkg] = m.testNames(pkg)
			}
			if err := mutant.tests.match(names[pkg]); err != nil {
				fail("%s: %s: %v", mutant.where, mutant.name, err)
			}
		}
	}
	if ok {
		fmt.Fprintf(out, "%d mutants of %d packages apply\n", n, len(lists))
	}
	return ok
}

var testFunction = regexp.MustCompile(`(?m)^func (Test\w*)\(`)

// testNames returns the names of the tests of a package.
func (m *module) testNames(pkg string) (names []string) {
	files, _ := filepath.Glob(filepath.Join(m.root, pkg, "*_test.go")) // Glob fails only for a malformed pattern
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			continue // then its tests are missing, which is reported
		}
		for _, match := range testFunction.FindAllStringSubmatch(string(b), -1) {
			names = append(names, match[1])
		}
	}
	return names
}

// match checks that each alternative of the regexp names a test.
func (t tests) match(names []string) error {
	for part := range strings.SplitSeq(t.regexp, "|") {
		function, _, _ := strings.Cut(part, "/")
		pattern, err := regexp.Compile(function)
		if err != nil {
			return err
		}
		found := false
		for _, name := range names {
			found = found || pattern.MatchString(name)
		}
		if !found {
			return fmt.Errorf("the package %s must have a test that matches %q", t.pkg, function)
		}
	}
	return nil
}
