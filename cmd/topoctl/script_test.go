package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/topogen/topogen/runtime/errtop"
)

var update = flag.Bool("update", false, "take what the command prints for what the scripts want")

// The command is tested by scripts alone, as people call it: each file of
// testdata/script is one story.
func TestScripts(t *testing.T) {
	bin := t.TempDir()
	build := exec.Command("go", "build", "-o", bin, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	testscript.Run(t, testscript.Params{
		Dir:                filepath.Join("testdata", "script"),
		RequireUniqueNames: true,
		UpdateScripts:      *update,
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", bin+string(os.PathListSeparator)+e.Getenv("PATH"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code":  code,
			"keep":  keep,
			"bytes": content,
			"size":  size,
		},
	})
}

// code N COMMAND…: runs a command, which exits with N.
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N COMMAND…")
	}
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		e, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = e.ExitCode()
	}
	if want, err := strconv.Atoi(args[0]); err != nil || got != want {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
}

// keep FILE TEXT…: keeps errors, as a topology does; a text is written as in Go.
func keep(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: keep FILE TEXT…")
	}
	keeper, err := errtop.Open(errtop.Settings{Path: ts.MkAbs(args[0])})
	ts.Check(err)
	for _, text := range args[1:] {
		keeper.Record(0, "", 0, errors.New(unquoted(ts, text)), nil)
	}
	ts.Check(keeper.Close())
}

// bytes FILE TEXT: writes a file; the text is written as in Go.
func content(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: bytes FILE TEXT")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(unquoted(ts, args[1])), 0o666))
}

func unquoted(ts *testscript.TestScript, text string) string {
	s, err := strconv.Unquote(`"` + text + `"`)
	ts.Check(err)
	return s
}

// size FILE N: makes a file as long as that.
func size(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: size FILE N")
	}
	n, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), nil, 0o666))
	ts.Check(os.Truncate(ts.MkAbs(args[0]), n))
}

func TestMain(m *testing.M) {
	if runtime.GOOS == "windows" {
		fmt.Println("the scripts need a Unix shell")
		return
	}
	os.Exit(m.Run())
}
