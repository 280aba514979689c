package launch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// Streams are the standard streams of the program.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	Env      []string
	Secrets  []string // more of the environment, which the go command does not get
	Status   bool     // Err is a terminal, which gets a status line
	Shared   bool     // Out is the same terminal
}

// ErrCompile means that the program does not compile. The go command has printed the
// errors.
var ErrCompile = errors.New("the program does not compile")

// lingerMax is the time to wait for output of processes that the program left behind.
const lingerMax = time.Second

// Run compiles and runs a program, and returns its exit code. For a program that was
// killed by a signal the code is 128 plus the number of the signal, as in shells. With nodes
// the code is that of the first process that has failed.
func Run(ctx context.Context, p Program, s Streams) (code int, err error) {
	if len(p.Nodes) > 0 {
		return runNodes(ctx, p, s)
	}
	temp, err := os.MkdirTemp("", "topogen-run-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(temp)
	signals := listen()
	defer signals.close()

	child := newChild(p, s)
	defer child.close()
	if err := child.open(); err != nil {
		return 0, err
	}
	binary, err := compile(ctx, signals, child.values, temp, s)
	if err != nil {
		return 0, err
	}
	// The child is signalled when the thread that started it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := child.start(binary); err != nil {
		return 0, err
	}
	// If the system can remove a running program, no file remains even if topogen is killed.
	if runtime.GOOS == "linux" || runtime.GOOS != "windows" && !p.Spawns {
		os.RemoveAll(temp)
	}
	return child.wait(ctx, signals)
}

// compile returns the path of the executable.
func compile(ctx context.Context, signals *interrupts, v values, temp string, s Streams) (binary string, err error) {
	ctx, cancel := signals.until(ctx)
	defer cancel()
	l := &layers{temp: temp, replace: make(map[string]string)}
	target, err := v.compose(l)
	if err != nil {
		return "", err
	}
	return v.build(ctx, l, target, filepath.Join(temp, "program"), s)
}

// build compiles a package main of the overlay, and returns the path of the executable.
func (v values) build(ctx context.Context, l *layers, target, binary string, s Streams) (string, error) {
	if runtime.GOOS == "windows" {
		binary += ".exe"
	}
	args := []string{"build", "-o", binary}
	if len(l.replace) > 0 {
		overlay, err := l.overlay()
		if err != nil {
			return "", err
		}
		args = append(args, "-overlay", overlay)
	}
	build := exec.CommandContext(ctx, "go", append(append(args, v.Flags...), target)...)
	build.Dir = v.Dir
	build.Env = append(s.Env, "PWD="+v.Dir)
	var printed bytes.Buffer
	output := io.MultiWriter(s.Err, &printed)
	build.Stdout, build.Stderr = output, output
	build.Cancel = func() error { return interrupt(build.Process) }
	build.WaitDelay = lingerMax
	err := build.Run()
	if ctx.Err() != nil {
		return "", errors.New("interrupted while the program was compiled")
	}
	if _, ok := errors.AsType[*exec.ExitError](err); ok {
		if bytes.Contains(printed.Bytes(), []byte("missing go.sum entry")) {
			fmt.Fprintln(s.Err, "topogen: run go mod tidy: generated code imports modules that go.sum does not contain yet")
		}
		return "", ErrCompile
	} else if err != nil {
		return "", fmt.Errorf("compiling the program: %w", err)
	}
	return binary, nil
}
