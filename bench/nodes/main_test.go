package nodes

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/bench/measure"
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

// started is the process of the child that was started last.
var started int

// processorTime returns the processor time of this process and of a child so far.
func processorTime(tb testing.TB, child int) (own, other time.Duration) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", child))
	if err != nil {
		tb.Skip("needs Linux: ", err)
	}
	const tick = 10 * time.Millisecond                                                                   // on all systems that Go supports
	for _, f := range strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))[11:13] { // utime and stime
		n, err := strconv.Atoi(f)
		if err != nil {
			tb.Fatal(err)
		}
		other += time.Duration(n) * tick
	}
	return measure.CPU(), other
}

// reportProcessorTime reports the time since begin of both processes, for each operation.
func reportProcessorTime(b *testing.B, ownBefore, otherBefore time.Duration) {
	own, other := processorTime(b, started)
	b.ReportMetric(float64(own-ownBefore)/float64(b.N), "sender-ns/op")
	b.ReportMetric(float64(other-otherBefore)/float64(b.N), "receiver-ns/op")
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
	started = c.Process.Pid
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
