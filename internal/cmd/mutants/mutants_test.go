package main

import (
	"errors"
	"flag"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/topogen/topogen/internal/test/speed"
)

// command runs the command in the module of testdata.
func command(t *testing.T, args ...string) (ok bool, out string) {
	t.Helper()
	var b strings.Builder
	ok, err := run(t.Context(), "testdata/module", args, &b)
	if err != nil {
		t.Fatal(err)
	}
	return ok, b.String()
}

func TestOutcomes(t *testing.T) {
	speed.Landing(t)
	ok, out := command(t, "-hang", "3s", "./adder", "./red", "./start")
	if ok {
		t.Error("some mutants are not caught, and the command must fail")
	}
	for _, want := range []string{
		`caught +\S+ s  adder subtracts: TestAdd\n`,
		`NOT CAUGHT +\S+ s  adder large-ones-differ: large numbers are not added\n`,
		`ERROR +\S+ s  adder no-such-name: does not compile(.|\n)*undefined: c`,
		`caught +\S+ s  adder counts-for-ever: TestCount hangs for 3s\n`,
		`caught +\S+ s  adder panics: TestCount\n`,
		`caught +\S+ s  adder seven: TestSeeds\n`,
		`survives +0.0 s  adder order: The sum does not depend on the order.\n`,
		`ERROR +\S+ s  red forty: TestAnswer fails without a mutant\n +red_test.go`,
		`ERROR +\S+ s  red few-seeds: TestSeeds fails without a mutant\n`,
		`ERROR +\S+ s  red many-seeds: TestSeeds fails without a mutant\n`,
		`ERROR +\S+ s  red sleeps: TestSlow takes more than 1s without a mutant, a third of -hang: `,
		`ERROR +\S+ s  start not-ready: the test program has ended, but no test has failed: exit status 1\nnot ready\n`,
		`\n12 mutants in \d+ s: 4 caught, 1 not caught, 6 errors, 1 that no test can catch\n$`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("the output must match %s, got\n%s", want, out)
		}
	}
}

func TestOneIsCaught(t *testing.T) {
	speed.Landing(t)
	if ok, out := command(t, "-run", "^sub", "./..."); !ok {
		t.Errorf("the command must succeed:\n%s", out)
	}
}

func TestCheck(t *testing.T) {
	if ok, out := command(t, "-check", "./adder", "./red/..."); !ok || out != "11 mutants of 2 packages apply\n" {
		t.Errorf("got %v\n%s", ok, out)
	}
	ok, out := command(t, "-check")
	if ok {
		t.Error("a list does not match the code, and the command must fail")
	}
	const list = "stale/testdata/mutants.txt:"
	for _, want := range []string{
		list + `3: missing does not apply: .* got 0 times`,
		list + `8: part-of-a-line does not apply: .* got 0 times`,
		list + `13: twice-found does not apply: .* got 2 times`,
		list + `17: no-change must remove lines, and add other ones`,
		list + `22: nothing must change a file`,
		list + `24: no-file: .*other.go`,
		list + `28: no-test: the package stale must have a test that matches "\^TestTwice\$"`,
		list + `39: the name again must be unique, and is also in ` + list + "34",
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("the output must match %s, got\n%s", want, out)
		}
	}
	if n := strings.Count(out, "\n"); n != 8 {
		t.Errorf("got %d lines, want 8:\n%s", n, out)
	}
}

func TestInvalidLists(t *testing.T) {
	for text, want := range map[string]string{
		"== name\n":                   `p/testdata/mutants.txt:1: a mutant must begin with "== name: effect"`,
		"a.go\n":                      `p/testdata/mutants.txt:1: only tests, seeds and landing may precede the first mutant, got "a.go"`,
		"== a: b\n\nseeds many\n":     `p/testdata/mutants.txt:3: seeds must be a positive number, got "many"`,
		"== a: b\n- x\n":              `p/testdata/mutants.txt:2: the name of a file must precede the line "- x"`,
		"# text\n== a: b\nhang\n":     `p/testdata/mutants.txt:3: a line must be tests, seeds, hangs, landing, survives, a Go file, or begin with - or +, got "hang"`,
		"== a: b\na.go\n-x\nreadme\n": `p/testdata/mutants.txt:4: a line must be tests, seeds, hangs, landing, survives, a Go file, or begin with - or +, got "readme"`,
	} {
		if _, err := parseList("p", text); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

func TestSeveralEdits(t *testing.T) {
	l, err := parseList("p", "seeds 3\ntests ./q ^TestA$\n\n== a: b\nhangs\na.go\n-1\n+2\n-3\nb.go\n-4\n-\n+5\n\n== c: d\ntests ^TestC$\nlanding\n../e.go\n-6\n")
	if err != nil {
		t.Fatal(err)
	}
	a, c := l.mutants[0], l.mutants[1]
	if want := (tests{"q", "^TestA$", 3, false, true}); a.tests != want {
		t.Errorf("got %+v, want %+v", a.tests, want)
	}
	if want := (tests{"p", "^TestC$", 3, true, false}); c.tests != want {
		t.Errorf("got %+v, want %+v", c.tests, want)
	}
	if want := []edit{{"p/a.go", "1\n", "2\n"}, {"p/a.go", "3\n", ""}, {"p/b.go", "4\n\n", "5\n"}}; !slices.Equal(a.edits, want) {
		t.Errorf("got %q, want %q", a.edits, want)
	}
	if want := []edit{{"e.go", "6\n", ""}}; !slices.Equal(c.edits, want) {
		t.Errorf("got %q, want %q", c.edits, want)
	}
}

func TestSample(t *testing.T) {
	var all []*mutant
	for _, name := range []string{"a1", "a2", "a3", "a4", "b1", "c1", "c2"} {
		all = append(all, &mutant{pkg: name[:1], name: name})
	}
	all = append(all, &mutant{pkg: "d", name: "d1", survives: "text"}, &mutant{pkg: "e", name: "e1", tests: tests{landing: true}})
	names := func(n int, seed uint64) (names []string) {
		o := options{sample: n, seed: seed, name: regexp.MustCompile("")}
		for _, m := range choose(slices.Clone(all), o, io.Discard) {
			names = append(names, m.name)
		}
		return names
	}
	differ := false
	for seed := uint64(1); seed < 20; seed++ {
		got := names(5, seed)
		if again := names(5, seed); !slices.Equal(got, again) {
			t.Errorf("seed %d gives %v and %v", seed, got, again)
		}
		differ = differ || !slices.Equal(got, names(5, seed+1))
		count := map[byte]int{}
		for _, name := range got {
			count[name[0]]++
		}
		if len(got) != 5 || count['a'] != 2 || count['b'] != 1 || count['c'] != 2 {
			t.Errorf("seed %d: got %v, want two of a and c, and one of b", seed, got)
		}
	}
	if !differ {
		t.Error("all seeds give the same sample")
	}
	if got := names(100, 1); len(got) != 7 {
		t.Errorf("got %v, want all that a sample may contain", got)
	}
}

func TestBranches(t *testing.T) {
	m, err := findModule("testdata/module/adder")
	if err != nil {
		t.Fatal(err)
	}
	all, err := m.branches([]string{"."})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"adder.go:6":  "if (a > 1000) && false {",
		"adder.go:27": "case n > 0:\n\t\tif false {\n\t\t\tsign = 1\n\t\t}\n",
		"adder.go:31": "default:\n\t\tif false {\n\t\t\tsign = -1\n\t\t}\n",
	}
	for _, b := range all {
		for _, text := range b.changed {
			if w := want[b.where]; w == "" || !strings.Contains(text, w) {
				t.Errorf("%s must contain %q:\n%s", b.where, w, text)
			}
		}
		if b.pkg != "adder" {
			t.Errorf("got package %s, want adder", b.pkg)
		}
	}
	if len(all) != len(want) {
		t.Errorf("got %d branches, want %d", len(all), len(want))
	}
}

// TestBranchesNeedTestsThatPass covers the tests of all rounds, and of the package.
func TestBranchesNeedTestsThatPass(t *testing.T) {
	speed.Landing(t)
	m, err := findModule("testdata/module")
	if err != nil {
		t.Fatal(err)
	}
	m.temp = t.TempDir()
	green, red := round{"quick", []string{"./adder"}}, round{"quick", []string{"./red"}}
	if err := m.checkRounds(t.Context(), []round{green}); err != nil {
		t.Error(err)
	}
	err = m.checkRounds(t.Context(), []round{green, red})
	if want := "the tests ./red fail without a change: "; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	for _, j := range m.branchJobs([]*branch{{pkg: "red", where: "red.go:1"}}) {
		v := j.run(t.Context())
		if want := "TestAnswer fails without a mutant"; v.kind != failed || !strings.Contains(v.text, want) {
			t.Errorf("got %v, want an error with %q", v, want)
		}
	}
}

func TestUsage(t *testing.T) {
	for args, want := range map[string]string{
		"./nothing":         "no such file",
		"./nothing/...":     "no such file",
		"./adder/sub/...":   "no such file",
		"../../../..":       "is not in the module",
		"-run NOTHING":      "no mutant matches",
		"-run (":            "missing closing )",
		"-branches":         "-branches requires packages",
		"-branches ./adder": "the tests ./generated_test fail without a change: ",
		"-unknown":          "flag provided but not defined",
	} {
		if _, err := run(t.Context(), "testdata/module", strings.Fields(args), io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", args, err, want)
		}
	}
	if _, err := run(t.Context(), ".", []string{"-help"}, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("got %v, want the help", err)
	}
}

// TestTheNameOfATest covers panics: the output then names no test that has failed, but the
// test that ran.
func TestTheNameOfATest(t *testing.T) {
	for out, want := range map[string]string{
		"=== RUN   TestA\n--- PASS: TestA (0.00s)\n=== RUN   TestB\n=== RUN   TestB/x\n--- FAIL: TestB (0.00s)\n    --- FAIL: TestB/x (0.00s)\n": "TestB",
		"=== RUN   TestA\n=== RUN   TestA/x\npanic: text\n":                                     "TestA/x",
		"=== RUN   TestA\n=== PAUSE TestA\n=== RUN   TestB\n=== CONT  TestA\nfatal error: text": "TestA",
		"": "",
	} {
		if got := failedTest([]byte(out)); got != want {
			t.Errorf("got %q, want %q, in\n%s", got, want, out)
		}
	}
}

func TestOnlyTestsFail(t *testing.T) {
	for out, want := range map[string]bool{
		"=== RUN   TestA\n--- FAIL: TestA (0.00s)\n":                      true,
		"=== RUN   TestA/x\n    --- FAIL: TestA/x (0.00s)\n":              true,
		"=== RUN   TestA\npanic: text\n":                                  true,
		"fatal error: all goroutines are asleep - deadlock!\n":            true,
		"=== RUN   TestA\n--- PASS: TestA (0.00s)\nPASS\nclose: failed\n": false,
		"a panic: text\nFAIL\n":                                           false,
	} {
		if got := failure.MatchString(out); got != want {
			t.Errorf("got %v, want %v, in\n%s", got, want, out)
		}
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("CI", "true")
	t.Setenv("TOPOGEN_SPEED", "long")
	t.Setenv("TOPOGEN_SEED", "5")
	t.Setenv("TOPOGEN_SEEDS", "6")
	t.Setenv("GOFLAGS", "-p=2")
	for run, want := range map[tests][3]string{
		{}:              {"", "", "-p=2"},
		{seeds: 7}:      {"7", "", "-p=2"},
		{landing: true}: {"", "landing", "-p=2 -overlay=o.json"},
	} {
		last := map[string]string{}
		for _, entry := range environment(run, "o.json") {
			name, value, _ := strings.Cut(entry, "=")
			last[name] = value
		}
		for name, want := range map[string]string{"CI": "true", "TOPOGEN_SPEED": want[1], "TOPOGEN_SEED": "", "TOPOGEN_SEEDS": want[0], "GOFLAGS": want[2]} {
			if last[name] != want {
				t.Errorf("%+v: got %s=%q, want %q", run, name, last[name], want)
			}
		}
	}
}
