//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package process

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/topogen/topogen/runtime/internal/race"
)

// spawn starts the process and the goroutines that look after it.
func (c *Child) spawn() error {
	path, err := executable()
	if err != nil {
		return err
	}
	var files fileSet
	defer files.closeChildEnds()
	if err := files.open(); err != nil {
		files.closeParentEnds()
		return err
	}
	attr := &os.ProcAttr{Env: c.environment(), Files: files.theirs, Sys: attributes()}
	started := make(chan error)
	go c.watch(started, func() (*os.Process, error) { return os.StartProcess(path, os.Args, attr) })
	if err := <-started; err != nil {
		files.closeParentEnds()
		return err
	}
	c.conn, c.control, c.pipes = files.conn, files.control, files.output
	c.output.Add(2)
	go c.logOutput(c.pipes[0], "stdout")
	go c.logOutput(c.pipes[1], "stderr")
	started <- nil // everything is in place: its end may be told
	return nil
}

// watch starts the process, waits for its end and tells it. Linux kills a process
// when the thread ends that started it, not the whole parent (go.dev/issue/27505),
// so this keeps the thread.
func (c *Child) watch(started chan error, start func() (*os.Process, error)) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	process, err := start()
	if err != nil {
		started <- err
		return
	}
	c.process, c.exit = process, Exit{PID: process.Pid, Code: -1}
	started <- nil
	<-started
	stopWatching := c.watchMemory()
	state, err := c.reap()
	stopWatching()
	exit := c.exit
	if err == nil {
		exit.Code = state.ExitCode()
		if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			exit.Signal = signalName(status.Signal())
		}
	}
	runtime.UnlockOSThread()
	c.ended(exit)
}

// reap waits for the end. Where the system tells it before the number of the
// process is free, what the process left in its group is killed.
func (c *Child) reap() (*os.ProcessState, error) {
	if !waitForEnd(c.process.Pid) {
		state, err := c.process.Wait()
		c.mu.Lock()
		c.reaped = true
		c.mu.Unlock()
		return state, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	syscall.Kill(-c.process.Pid, syscall.SIGKILL)
	c.reaped = true
	return c.process.Wait()
}

// kill ends the process and its group, where it is not gone yet, for a cause that
// its ExitError tells; nil for one that was to end anyway.
func (c *Child) kill(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reaped {
		return
	}
	if c.cause == nil {
		c.cause = cause
	}
	syscall.Kill(-c.process.Pid, syscall.SIGKILL)
	c.process.Kill()                    // it may have left its group
	c.conn.SetDeadline(time.Unix(1, 0)) // a process that waits in the kernel does not go
}

// environment is that of this process, and what it is to be.
func (c *Child) environment() []string {
	set := []string{variable + "=" + c.settings.value(os.Getpid(), inheritable())}
	if c.settings.Memory > 0 { // the collector works harder before the limit is reached
		set = append(set, "GOMEMLIMIT="+strconv.FormatInt(c.settings.Memory/100*85, 10))
	}
	if sanitizer := os.Getenv("GORACE"); race.Enabled && !strings.Contains(sanitizer, "atexit_sleep_ms") {
		// By default the race detector waits for a second at the end of each process.
		set = append(set, "GORACE="+strings.TrimSpace(sanitizer+" atexit_sleep_ms=0"))
	}
	env := slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return slices.ContainsFunc(set, func(s string) bool {
			name, _, _ := strings.Cut(s, "=")
			return strings.HasPrefix(entry, name+"=")
		})
	})
	return append(env, set...)
}

// fileSet are the ends of what connects a process to its parent. Theirs are closed
// in the parent once it runs.
type fileSet struct {
	theirs        []*os.File
	conn, control *os.File
	output        []*os.File
}

func (s *fileSet) open() error {
	stdin, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	s.theirs = append(s.theirs, stdin)
	for range 2 {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		s.theirs, s.output = append(s.theirs, w), append(s.output, r)
	}
	conn, theirs, err := socketPair()
	if err != nil {
		return err
	}
	s.conn, s.theirs = conn, append(s.theirs, theirs)
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	s.control, s.theirs = w, append(s.theirs, r)
	return nil
}

func (s *fileSet) closeChildEnds() { closeAll(s.theirs) }

func (s *fileSet) closeParentEnds() { closeAll(append(s.output, s.conn, s.control)) } // Close of a nil file is an error

func socketPair() (ours, theirs *os.File, err error) {
	syscall.ForkLock.RLock() // nobody forks before both are marked
	defer syscall.ForkLock.RUnlock()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	for _, fd := range fds {
		syscall.CloseOnExec(fd)
	}
	syscall.SetNonblock(fds[0], true)
	return os.NewFile(uintptr(fds[0]), "parent's end"), os.NewFile(uintptr(fds[1]), "child's end"), nil
}

// inheritable are the open files that a process started now inherits besides those
// that it is given: the runtime marks its own, others do not. The process closes
// them, as they may be somebody's listeners and locks.
func inheritable() (fds []int) {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil || fd <= controlFD {
			continue
		}
		flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFD, 0)
		if errno == 0 && flags&syscall.FD_CLOEXEC == 0 {
			fds = append(fds, fd)
		}
	}
	return fds
}

// openInherited makes this process a child: it takes the connection and the control pipe,
// and lets go of the files that it was not meant to inherit.
func openInherited(inherited []int) (conn, control *os.File, err error) {
	name, err := syscall.Getsockname(socketFD)
	if err != nil {
		return nil, nil, fmt.Errorf("file %d is no socket: %w", socketFD, err)
	}
	kind, err := syscall.GetsockoptInt(socketFD, syscall.SOL_SOCKET, syscall.SO_TYPE)
	if _, ok := name.(*syscall.SockaddrUnix); !ok || err != nil || kind != syscall.SOCK_STREAM {
		return nil, nil, fmt.Errorf("file %d is not the end of a socket pair", socketFD)
	}
	var stat syscall.Stat_t
	if err := syscall.Fstat(controlFD, &stat); err != nil || stat.Mode&syscall.S_IFMT != syscall.S_IFIFO {
		return nil, nil, fmt.Errorf("file %d is no pipe", controlFD)
	}
	for _, fd := range inherited {
		syscall.Close(fd)
	}
	for _, fd := range []int{socketFD, controlFD} {
		syscall.CloseOnExec(fd)
		syscall.SetNonblock(fd, true)
	}
	return os.NewFile(socketFD, "parent"), os.NewFile(controlFD, "control"), nil
}

// killGroup ends this process, whose parent is gone, and what it has started.
func killGroup() {
	syscall.Kill(0, syscall.SIGKILL)
	select {}
}

// signalName names the signals that end processes.
func signalName(s syscall.Signal) string {
	if name, ok := signalNames[s]; ok {
		return name
	}
	return "signal " + strconv.Itoa(int(s))
}

var signalNames = map[syscall.Signal]string{
	syscall.SIGABRT: "SIGABRT", syscall.SIGALRM: "SIGALRM", syscall.SIGBUS: "SIGBUS", syscall.SIGFPE: "SIGFPE",
	syscall.SIGHUP: "SIGHUP", syscall.SIGILL: "SIGILL", syscall.SIGINT: "SIGINT", syscall.SIGKILL: "SIGKILL",
	syscall.SIGPIPE: "SIGPIPE", syscall.SIGQUIT: "SIGQUIT", syscall.SIGSEGV: "SIGSEGV", syscall.SIGSYS: "SIGSYS",
	syscall.SIGTERM: "SIGTERM", syscall.SIGTRAP: "SIGTRAP", syscall.SIGUSR1: "SIGUSR1", syscall.SIGUSR2: "SIGUSR2",
	syscall.SIGXCPU: "SIGXCPU", syscall.SIGXFSZ: "SIGXFSZ",
}
