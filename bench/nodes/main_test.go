package nodes

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// roles are what a child process does instead of tests. Each prints a line when it is
// ready, and ends when its input ends.
var roles = map[string]func(arg string) error{}

func TestMain(m *testing.M) {
	if role, arg, ok := strings.Cut(os.Getenv("NODES_ROLE"), " "); ok {
		if err := roles[role](arg); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// start starts a child process and returns the first line that it prints.
func start(tb testing.TB, role, arg string, env ...string) (line string) {
	c := exec.Command(os.Args[0])
	c.Env = append(append(os.Environ(), "NODES_ROLE="+role+" "+arg), env...)
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := c.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		in.Close()
		_ = c.Wait()
	})
	line, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		tb.Fatalf("%s: %v", role, err)
	}
	return strings.TrimSpace(line)
}

// untilClosed waits until the input of the process ends.
func untilClosed() {
	var b [1]byte
	for {
		if _, err := os.Stdin.Read(b[:]); err != nil {
			return
		}
	}
}
