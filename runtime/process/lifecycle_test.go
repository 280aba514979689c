//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestExitCodes(t *testing.T) {
	for script, want := range map[string]Exit{
		"exit 0": {Code: 0, InCall: true},
		"exit 3": {Code: 3, InCall: true},
		"crash":  {Code: 2, InCall: true},
	} {
		c := start(t, settings("camera"))
		_, err := c.Call(1, 0, []byte(script))
		want.PID = c.PID()
		if e := exitOf(t, err); e.Exit != want || e.Exit.Clean() || exitOf(t, c.Err()).Exit != want {
			t.Errorf("%s: %+v", script, e.Exit)
		}
	}
	c := start(t, settings("camera||exit 0"))
	if e := exitOf(t, c.Serve(nil)); !e.Exit.Clean() {
		t.Errorf("code 0 in Serve: %v", e)
	}
	c = start(t, settings("camera"))
	ask(t, c, "exit-later")
	<-c.Done()
	if e := exitOf(t, c.Err()); !e.Exit.Clean() {
		t.Errorf("code 0 between calls: %v", e)
	}
}

// TestCloseFails: after Close has failed, the process exits cleanly or is killed.
func TestCloseFails(t *testing.T) {
	t.Parallel() // it waits for endTimeout
	exit, err := start(t, settings("camera|||return no disk")).Close()
	if !exit.Clean() || err == nil || err.Error() != "no disk" {
		t.Errorf("%+v, %v", exit, err)
	}
	s := settings("camera|||hang")
	s.CloseTimeout = time.Millisecond
	exit, err = start(t, s).Close()
	if !errors.Is(err, ErrClose) || !strings.HasSuffix(err.Error(), "in time: 1.001s") || exit.Signal != "SIGKILL" {
		t.Errorf("%+v, %v", exit, err)
	}
}

func TestSignalsForTheGroup(t *testing.T) {
	c := start(t, settings("camera"))
	if group, err := syscall.Getpgid(c.PID()); err != nil || group != c.PID() {
		t.Errorf("its process group is %d, %v", group, err)
	}
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		syscall.Kill(c.PID(), s)
	}
	if a := ask(t, c, "echo on"); string(a.Reply) != "7 -1 on" {
		t.Errorf("the process does not answer any more: %q", a.Reply)
	}
}

func TestWhatIsInherited(t *testing.T) {
	fd, err := syscall.Dup(1) // is not close-on-exec
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	t.Setenv("HERITAGE", "rich")
	t.Setenv("TOPOGEN_DURABLE_TOKEN", "s3cret")
	t.Setenv("TOPOGEN_DURABLE_TOKENS", "another variable")
	c := start(t, settings("camera"))
	for script, want := range map[string]string{
		"environment HERITAGE":               "rich",
		"environment TOPOGEN_DURABLE_TOKEN":  "",
		"environment TOPOGEN_DURABLE_TOKENS": "another variable",
		"environment " + variable:            "",
		"stdin":                              "0 <nil>",
		"files":                              "[]",
	} {
		if a := ask(t, c, script); string(a.Reply) != want {
			t.Errorf("%s: %q, want %q", script, a.Reply, want)
		}
	}
}

// TestTheThreadOfStart: the thread that called Start may end before the process.
func TestTheThreadOfStart(t *testing.T) {
	started := make(chan *Child)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		c, err := Start(t.Context(), settings("camera"))
		if err != nil {
			t.Error(err)
		}
		started <- c
	}()
	c := <-started
	for range 100 {
		ask(t, c, "echo on")
	}
	c.Close()
}

func TestMemory(t *testing.T) {
	t.Parallel() // the size is checked every 100 ms
	s := settings("camera")
	s.Memory = 128 << 20
	c := start(t, s)
	if a := ask(t, c, "environment GOMEMLIMIT"); string(a.Reply) != strconv.Itoa(128<<20/100*85) {
		t.Errorf("GOMEMLIMIT=%s", a.Reply)
	}
	if runtime.GOOS != "linux" {
		t.Skip("the resident size is only checked on Linux")
	}
	_, err := c.Call(1, 0, []byte("grow"))
	if !errors.Is(err, ErrMemory) || exitOf(t, err).Exit.Signal != "SIGKILL" {
		t.Errorf("%v", err)
	}
}

// hasExited reports whether a process has ended, reaped or not.
func hasExited(pid int) bool {
	if syscall.Kill(pid, 0) == syscall.ESRCH {
		return true
	}
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(state, "Z")
}

// parentVariable makes this test binary the parent of a process. It prints the process ID
// and executes the script in the variable in a call.
const parentVariable = "TOPOGEN_TEST_PARENT"

func runAsParent() {
	script := os.Getenv(parentVariable)
	os.Unsetenv(parentVariable)
	takeOver()
	name := "camera"
	if hostile[script] != nil {
		name = script
	}
	c, err := Start(context.Background(), settings(name))
	if err != nil {
		panic(err)
	}
	fmt.Println(c.PID())
	c.Call(1, 0, []byte(script))
	select {}
}

// TestTheParentDies: a process ends with its parent, whatever the process does.
func TestTheParentDies(t *testing.T) {
	scripts := []string{"echo idle", "hang", "spin"}
	if runtime.GOOS == "linux" {
		scripts = append(scripts, "deaf") // the process itself does not detect the parent's end
	}
	for _, script := range scripts {
		parent := exec.Command(os.Args[0])
		parent.Env = append(os.Environ(), parentVariable+"="+script)
		out, err := parent.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := parent.Start(); err != nil {
			t.Fatal(err)
		}
		line, _ := bufio.NewReader(out).ReadString('\n')
		pid, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil || hasExited(pid) {
			t.Fatalf("the parent printed %q", line)
		}
		parent.Process.Kill()
		until(t, "the process ends with its parent", func() bool { return hasExited(pid) })
		parent.Wait()
	}
}

// TestTheConnectionEnds: a closed control pipe ends the process, for systems that do not
// report the parent's end.
func TestTheConnectionEnds(t *testing.T) {
	c := start(t, settings("camera"))
	go c.control.Close()
	_, err := c.Call(1, 0, []byte("hang"))
	if e := exitOf(t, err); e.Cause != nil || e.Exit.Signal != "SIGKILL" {
		t.Errorf("%v", e)
	}
}

// TestGrandchildren: processes that a process has started end when it is killed and, on
// Linux, when it exits.
func TestGrandchildren(t *testing.T) {
	ends := map[string]func(*Child){"kill": (*Child).Kill}
	if runtime.GOOS == "linux" {
		ends["close"] = func(c *Child) { c.Close() }
		ends["exit"] = func(c *Child) { c.Call(1, 0, []byte("exit 3")) }
	}
	for name, end := range ends {
		c := start(t, settings("camera"))
		pid, err := strconv.Atoi(string(ask(t, c, "start-process").Reply))
		if err != nil || hasExited(pid) {
			t.Fatalf("%v", err)
		}
		end(c)
		until(t, name+": the grandchild ends", func() bool { return hasExited(pid) })
	}
}

// TestNothingIsLeft: processes leave no goroutines, files or zombies, however they end.
func TestNothingIsLeft(t *testing.T) {
	ends := []func(*Child){
		func(c *Child) { c.Close() },
		func(c *Child) { c.Kill() },
		func(c *Child) { c.Stop(); c.Cancel(); c.Kill(); c.Close() },
		func(c *Child) { c.Call(1, 0, []byte("exit 3")) },
		func(c *Child) { c.Call(1, 0, []byte("panic")) },
		func(c *Child) { syscall.Kill(c.PID(), syscall.SIGKILL) },
	}
	all := func() {
		for _, end := range ends {
			c, err := Start(t.Context(), settings("camera"))
			if err != nil {
				t.Fatal(err)
			}
			end(c)
		}
		for name, want := range map[string]string{
			"camera|return no": "did not start: no",
			"camera|panic":     "did not start: panic: ",
			"camera|exit 1":    "exited with code 1",
			"silent":           ErrStartup.Error(),
		} {
			s := settings(name)
			if name == "silent" {
				s.StartupTimeout = 10 * time.Millisecond
			}
			if _, err := Start(t.Context(), s); err == nil || !strings.Contains(err.Error(), want) {
				t.Fatalf("%s: got %v, want %s", name, err, want)
			}
		}
	}
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // else the collector would close leaked files
	all()                                            // the Go runtime opens its own files the first time
	until(t, "the first goroutines end", func() bool { return !strings.Contains(stacks(), "process.(*Child)") })
	files := openFiles(t)
	for range 3 {
		all()
	}
	until(t, "all goroutines end", func() bool { return !strings.Contains(stacks(), "process.(*Child)") })
	until(t, "all files are closed", func() bool { return openFiles(t) <= files })
	var status syscall.WaitStatus
	if pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil); pid > 0 {
		t.Errorf("process %d was not reaped: %v", pid, err)
	}
}

func stacks() string {
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, true)])
}

func openFiles(t *testing.T) int {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Skip(err)
	}
	return len(entries)
}

// TestProcessOutsideItsGroup: a process that left its process group is killed too.
func TestProcessOutsideItsGroup(t *testing.T) {
	c := start(t, settings("camera"))
	over := make(chan error, 1)
	go func() {
		_, err := c.Call(1, 0, []byte("leave-group"))
		over <- err
	}()
	until(t, "the process leaves its group", func() bool {
		group, err := syscall.Getpgid(c.PID())
		return err == nil && group != c.PID()
	})
	c.Kill()
	if err := <-over; !errors.Is(err, ErrKilled) {
		t.Error(err)
	}
	until(t, "the process ends", func() bool { return hasExited(c.PID()) })
}
