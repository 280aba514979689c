package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/topogen/topogen/internal/test/rerun"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/errtop"
)

var update = flag.Bool("update", false, "take what the command prints for what the scripts want")

// Only scripts test the command, as users call it. Each file in testdata/script is one
// scenario. In a quick run the commands of a script share a process.
func TestScripts(t *testing.T) {
	quick := speed.IsQuick(t)
	path := os.Getenv("PATH") // has the command as a part of the test binary
	if !quick {
		path = buildCommand(t) + string(os.PathListSeparator) + path
	}
	testscript.Run(t, testscript.Params{
		Dir:                filepath.Join("testdata", "script"),
		RequireUniqueNames: true,
		UpdateScripts:      *update,
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", path)
			e.Values[durableKey{}] = map[string]*durableServer{}
			if quick {
				return startShell(e)
			}
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name != "quick" {
				return false, fmt.Errorf("the condition must be quick, got %s", name)
			}
			return quick, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code":        code,
			"shows":       shows,
			"keep":        keep,
			"bytes":       content,
			"size":        size,
			"samedump":    samedump,
			"savelog":     savelog,
			"flip":        flip,
			"certificate": certificate,
			"startnodes":  startNodes,
			"joins":       joins,
			"second":      second,
			"instancelog": instanceLog,
			"listening":   listening,
			"operators":   operators,
			"ports":       ports,
			"ask":         ask,
			"serves":      serves,
			"stops":       stops,
			"hastask":     hasTask,
			"debugtime":   debugTime,
			"metrics":     metrics,
			"breakstore":  breakStore,
			"storeahead":  storeAhead,

			"webcertificates": webCertificates,
		},
	})
}

// buildCommand returns a folder with the command.
func buildCommand(t *testing.T) string {
	t.Helper()
	rerun.WhenCodeChanges(t)
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

// code N COMMAND…: runs a command, which exits with N.
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N COMMAND…")
	}
	got := runCommand(ts, args[1:])
	if want, err := strconv.Atoi(args[0]); err != nil || got != want {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
}

// runCommand runs a command and returns its exit code.
func runCommand(ts *testscript.TestScript, args []string) int {
	if s, ok := ts.Value(shellKey{}).(*shell); ok && args[0] == "topoctl" {
		return s.run(ts, args[1:])
	}
	err := ts.Exec(args[0], args[1:]...)
	if err == nil {
		return 0
	}
	e, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		ts.Fatalf("%v", err)
	}
	return e.ExitCode()
}

// [!] shows PATTERN topoctl ARGUMENT…: repeats a command until its output matches, or with !
// does not match, PATTERN. A follower applies a change later than the leader.
func shows(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 3 || args[1] != "topoctl" {
		ts.Fatalf("usage: [!] shows PATTERN topoctl ARGUMENT…")
	}
	path := filepath.Join(filepath.SplitList(ts.Getenv("PATH"))[0], args[1])
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	for end := time.Now().Add(askMax); ; {
		out, err := exec.Command(path, args[2:]...).Output()
		ts.Check(err)
		if pattern.Match(out) != neg {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("the last output is:\n%s", out)
		}
	}
}

// keep FILE TEXT…: records errors as a topology does. TEXT is a Go string.
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

// bytes FILE TEXT: writes a file. TEXT is a Go string.
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

// size FILE N: sets the size of a file to N bytes.
func size(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: size FILE N")
	}
	n, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), nil, 0o666))
	ts.Check(os.Truncate(ts.MkAbs(args[0]), n))
}

// certificate PATH URI DAYS: checks PATH.crt and PATH.key against ca.crt in the same
// folder, their identity, and their validity.
func certificate(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: certificate PATH URI DAYS")
	}
	path := ts.MkAbs(args[0])
	pair, err := tls.LoadX509KeyPair(path+".crt", path+".key")
	ts.Check(err)
	ca, err := os.ReadFile(filepath.Join(filepath.Dir(path), "ca.crt"))
	ts.Check(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: roots})
	ts.Check(err)
	days := strconv.FormatFloat(time.Until(pair.Leaf.NotAfter).Hours()/24, 'f', 0, 64)
	if got := pair.Leaf.URIs[0].String(); got != args[1] || days != args[2] {
		ts.Fatalf("for %s, %s days", got, days)
	}
}

// commands are the programs that the test binary runs when it is called by their names.
var commands = map[string]func(){"topoctl": main, "ledgernode": ledgerNode}

func TestMain(m *testing.M) {
	if runtime.GOOS == "windows" {
		fmt.Println("the scripts need a Unix shell")
		return
	}
	speed.Parallel(16, 0) // most scripts wait, for elections and timeouts
	testscript.Main(m, commands)
}
