package siege

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/child"
)

// A Process is a server in a child process.
type Process struct {
	Addresses []string // as the server has given them to Ready
	pid       int
	log       logs
}

// Start starts a function of child.Run with further variables of its environment, and waits until it
// calls Ready. The process ends with the test.
func Start(t testing.TB, function string, environment ...string) *Process {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("a siege reads the memory of a process from /proc")
	}
	cmd := child.Command(function)
	cmd.Env = append(cmd.Env, environment...)
	p := new(Process)
	cmd.Stderr = &p.log
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.pid = cmd.Process.Pid
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the end of the log of the server:\n%s", p.log.end())
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the server did not start: %v\n%s", err, p.Log())
	}
	p.Addresses = strings.Fields(line)
	return p
}

// Ready tells Start the addresses of a server, and never returns: the process ends with its parent. A
// server calls it when it accepts connections.
func Ready(addresses ...string) {
	fmt.Println(strings.Join(addresses, " "))
	select {}
}

// Log returns what the server has written to the standard error.
func (p *Process) Log() string {
	p.log.mu.Lock()
	defer p.log.mu.Unlock()
	return p.log.text.String()
}

type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logs) end() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text.Bytes()[max(0, l.text.Len()-4000):])
}

// CPU returns the processor time that the server has used since its start.
func (p *Process) CPU(t testing.TB) time.Duration {
	t.Helper()
	text := p.read(t, "stat")
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:]) // the name of the program may contain spaces
	const user, system = 14 - 3, 15 - 3                                 // proc(5) counts from 1, and the state is field 3
	ticks := 0
	for _, field := range []int{user, system} {
		n, err := strconv.Atoi(fields[field])
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * (time.Second / 100) // USER_HZ is 100 on all architectures of Go
}

// restartPeak makes peak count from now on, and returns the resident memory in bytes.
func (p *Process) restartPeak(t testing.TB) int64 {
	t.Helper()
	if err := os.WriteFile(p.file("clear_refs"), []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
	return p.peak(t)
}

// peak returns the largest resident memory in bytes.
func (p *Process) peak(t testing.TB) int64 {
	t.Helper()
	for line := range strings.Lines(p.read(t, "status")) {
		if text, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(text), " kB"), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n << 10
		}
	}
	t.Fatal("there is no VmHWM in " + p.file("status"))
	return 0
}

func (p *Process) file(name string) string { return fmt.Sprintf("/proc/%d/%s", p.pid, name) }

func (p *Process) read(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(p.file(name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
