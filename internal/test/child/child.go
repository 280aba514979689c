// Package child lets a test program start itself again, as a node or as another process of a test.
//
// # Usage
//
//	func TestMain(m *testing.M) {
//		child.Run(map[string]func() error{"node": runNode})
//		os.Exit(m.Run())
//	}
//
//	cmd := child.Command("node") // in a test
//	cmd.Env = append(cmd.Env, "TOPOGEN_NODE=n1")
//
// # Guarantees
//
// A child ends at the latest when the test program ends, also if that is killed or exceeds
// the time limit of go test.
package child

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
)

// variable has the name of the function that a child runs.
const variable = "TOPOGEN_TEST_CHILD"

// lifelineFile is the number of the file that a child reads: that of the first of ExtraFiles.
const lifelineFile = 3

// lifeline is a pipe to which nothing is written. The kernel closes it when this process ends.
var lifeline = sync.OnceValue(func() (ends [2]*os.File) {
	var err error
	if ends[0], ends[1], err = os.Pipe(); err != nil {
		panic(err)
	}
	return ends
})

// Run runs the function of a child, and ends the process. In the test program it returns.
func Run(functions map[string]func() error) {
	name := os.Getenv(variable)
	if name == "" {
		// A child with the race detector would wait for a second before it ends.
		os.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0")
		return
	}
	run, ok := functions[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "child: no function has the name %q\n", name)
		os.Exit(2)
	}
	go endWithParent()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, name, "failed:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// endWithParent ends this process when its parent has ended.
func endWithParent() {
	_, _ = io.Copy(io.Discard, os.NewFile(lifelineFile, "lifeline")) // returns at the end of the parent
	os.Exit(1)
}

// Command returns the command that runs a function in a child, with the environment of this
// process.
func Command(function string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), variable+"="+function)
	cmd.ExtraFiles = []*os.File{lifeline()[0]}
	return cmd
}
