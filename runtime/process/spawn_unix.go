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

// spawn starts the process and the goroutines that serve it.
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
	attr := &os.ProcAttr{Env: c.environment(), Files: files.childEnds, Sys: attributes()}
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
	started <- nil // the files are set up: from now on watch may call ended
	return nil
}

// watch starts the process, waits until it ends, and calls ended. Linux kills a process
// (Pdeathsig) when the thread that started it ends, not when the parent process ends
// (go.dev/issue/27505), so watch stays on one thread.
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

// reap waits for the end of the process. If the system reports the end before it frees
// the process ID, reap kills the remaining processes of the group.
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

// kill kills the process and its group unless it has been reaped. cause becomes the Cause
// of the ExitError; it is nil if the process was about to exit anyway.
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
	c.conn.SetDeadline(time.Unix(1, 0)) // a process that is blocked in the kernel does not exit
}

// secret is the environment variable with the token of a server of durable promises. Only the
// parent is a client of the server, so the token must not be in a dump or log of the process.
const secret = "TOPOGEN_DURABLE_TOKEN"

// environment returns the environment of this process plus the variable, and without the secret.
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
		return strings.HasPrefix(entry, secret+"=") || slices.ContainsFunc(set, func(s string) bool {
			name, _, _ := strings.Cut(s, "=")
			return strings.HasPrefix(entry, name+"=")
		})
	})
	return append(env, set...)
}

// fileSet holds the ends of the files that connect a process to its parent. The
// parent closes childEnds after the start.
type fileSet struct {
	childEnds     []*os.File
	conn, control *os.File
	output        []*os.File
}

func (s *fileSet) open() error {
	stdin, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	s.childEnds = append(s.childEnds, stdin)
	for range 2 {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		s.childEnds, s.output = append(s.childEnds, w), append(s.output, r)
	}
	conn, childEnd, err := socketPair()
	if err != nil {
		return err
	}
	s.conn, s.childEnds = conn, append(s.childEnds, childEnd)
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	s.control, s.childEnds = w, append(s.childEnds, r)
	return nil
}

func (s *fileSet) closeChildEnds() { closeAll(s.childEnds) }

func (s *fileSet) closeParentEnds() { closeAll(append(s.output, s.conn, s.control)) } // Close of a nil file returns an error, which is ignored

func socketPair() (parentEnd, childEnd *os.File, err error) {
	syscall.ForkLock.RLock() // no fork may happen before both descriptors are marked close-on-exec
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

// inheritable returns the open files that a process started now would inherit, other than
// its own. The Go runtime marks its files close-on-exec, other code may not. The process
// closes them, because they may be listeners or locks of the parent.
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

// openInherited opens the connection and the control pipe of a child process, and closes
// the files that it must not inherit.
func openInherited(inherited []int) (conn, control *os.File, err error) {
	name, err := syscall.Getsockname(socketFD)
	if err != nil {
		return nil, nil, fmt.Errorf("file %d is not a socket: %w", socketFD, err)
	}
	kind, err := syscall.GetsockoptInt(socketFD, syscall.SOL_SOCKET, syscall.SO_TYPE)
	if _, ok := name.(*syscall.SockaddrUnix); !ok || err != nil || kind != syscall.SOCK_STREAM {
		return nil, nil, fmt.Errorf("file %d is not the end of a socket pair", socketFD)
	}
	var stat syscall.Stat_t
	if err := syscall.Fstat(controlFD, &stat); err != nil || stat.Mode&syscall.S_IFMT != syscall.S_IFIFO {
		return nil, nil, fmt.Errorf("file %d is not a pipe", controlFD)
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

// killGroup ends this process and its process group, because its parent has ended.
func killGroup() {
	syscall.Kill(0, syscall.SIGKILL)
	select {}
}

// signalName returns the name of a signal that ends processes.
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
