package main

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/topogen/topogen/internal/test/rerun"
	"github.com/topogen/topogen/internal/test/speed"
)

var update = flag.Bool("update", false, "update the scripts with the current output")

// Only scripts test the command, as users call it. Each file in testdata/script is one
// scenario. The scripts run the real binary, because topogen reads its own build
// information. In a quick run, which skips most scripts, the test binary is the command.
func TestScripts(t *testing.T) {
	quick, path := speed.IsQuick(t), os.Getenv("PATH")
	if !quick {
		path = buildCommands(t) + string(os.PathListSeparator) + path
	}
	checkout, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	shared := goValues(t)
	testscript.Run(t, testscript.Params{
		Dir:                filepath.Join("testdata", "script"),
		RequireUniqueNames: true,
		UpdateScripts:      *update,
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", path)
			e.Setenv("BIN", filepath.SplitList(path)[0])
			e.Setenv("CHECKOUT", checkout)
			e.Setenv("HOME", filepath.Join(e.WorkDir, ".home"))
			e.Setenv("XDG_CACHE_HOME", filepath.Join(e.WorkDir, ".home", "cache"))
			// The scripts share the caches of the go command. A fresh cache lacks the tests of
			// dependencies, which go mod tidy downloads.
			for key, value := range shared {
				e.Setenv(key, value)
			}
			e.Setenv("GOSUMDB", "off")
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name != "quick" {
				return false, fmt.Errorf("the condition must be quick, got %s", name)
			}
			return quick, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code":    code,
			"module":  module,
			"replace": replace,
			"await":   await,
			"same":    same,
			"stray":   stray,
		},
	})
}

// buildCommands returns a folder with the commands.
func buildCommands(t *testing.T) string {
	t.Helper()
	rerun.WhenCodeChanges(t)
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", bin, ".", "../topogen-vet").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

// goValues returns settings of the go command that the scripts share with this process.
func goValues(t *testing.T) map[string]string {
	values := make(map[string]string)
	out, err := exec.Command("go", "env", "-json", "GOCACHE", "GOMODCACHE", "GOFLAGS", "GOTOOLCHAIN", "GOPROXY").Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &values); err != nil {
		t.Fatal(err)
	}
	values["GOFLAGS"] += " -ldflags=-s" // the programs of scripts need no debug information, which takes time to link
	return values
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

// module PATH [DIR]: creates a module that uses the checkout.
func module(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: module PATH [DIR]")
	}
	dir := ts.MkAbs(".")
	if len(args) == 2 {
		dir = ts.MkAbs(args[1])
		ts.Check(os.MkdirAll(dir, 0o777))
	}
	checkout := ts.Getenv("CHECKOUT")
	ts.Check(os.WriteFile(filepath.Join(dir, "go.mod"), []byte(moduleText(args[0], checkout)), 0o666))
	sums, err := os.ReadFile(filepath.Join(checkout, "go.sum"))
	ts.Check(err)
	ts.Check(os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o666))
}

// moduleText returns the go.mod of a module that uses the checkout.
func moduleText(path, checkout string) string {
	return fmt.Sprintf(`module %s

go 1.26.0

require github.com/topogen/topogen v0.0.0
require github.com/cespare/xxhash/v2 v2.3.0

replace github.com/topogen/topogen => %s
`, path, checkout)
}

// replace FILE OLD NEW: replaces the first OLD in a file by NEW.
func replace(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: replace FILE OLD NEW")
	}
	text := ts.ReadFile(args[0])
	old, fresh := unescape(args[1]), unescape(args[2])
	if !strings.Contains(text, old) {
		ts.Fatalf("%s does not contain %q", args[0], old)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Replace(text, old, fresh, 1)), 0o666))
}

func unescape(s string) string { return strings.NewReplacer(`\n`, "\n", `\t`, "\t").Replace(s) }

// await FILE: waits until a program in the background has created the file.
func await(ts *testscript.TestScript, neg bool, args []string) {
	const awaitMax = 60 * time.Second
	if neg || len(args) != 1 {
		ts.Fatalf("usage: await FILE")
	}
	for end := time.Now().Add(awaitMax); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(ts.MkAbs(args[0])); err == nil {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("%s was not created within %v", args[0], awaitMax)
		}
	}
}

// same DIR NAME…: checks that the folder has exactly these entries.
func same(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: same DIR NAME…")
	}
	entries, err := os.ReadDir(ts.MkAbs(args[0]))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		ts.Fatalf("%v", err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	if got, want := strings.Join(names, " "), strings.Join(args[1:], " "); got != want {
		ts.Fatalf("%s has the entries %s, want %s", args[0], got, want)
	}
}

// stray: creates the temporary file of a killed build, and sets STRAY to its name.
func stray(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: stray")
	}
	host, err := os.Hostname()
	ts.Check(err)
	killed := exec.Command("true")
	ts.Check(killed.Run())
	sum := sha256.Sum256([]byte(host))
	name := fmt.Sprintf(".topogen-%x-%d-0123456789abcdef.tmp", sum[:4], killed.Process.Pid)
	ts.Check(os.WriteFile(ts.MkAbs(name), nil, 0o666))
	ts.Setenv("STRAY", name)
}

func TestMain(m *testing.M) {
	if runtime.GOOS == "windows" {
		fmt.Println("the scripts need a Unix shell and signals")
		return
	}
	speed.Parallel(0, 4) // scripts wait for nodes and timeouts
	testscript.Main(m, map[string]func(){"topogen": main})
}
