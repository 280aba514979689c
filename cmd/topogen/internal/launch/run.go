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

// Streams are those of the program.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	Env      []string
	Status   bool // Err is a terminal, which gets a status line
	Shared   bool // Out is the same terminal
}

// ErrCompile says that the program does not compile; the go command has said
// why.
var ErrCompile = errors.New("the program does not compile")

// lingerMax is how long we wait for output of processes that the program has
// left behind.
const lingerMax = time.Second

// Run compiles and runs a program, and returns its exit code. Where it was
// killed by a signal that is 128 and the signal's number, as shells have it.
func Run(ctx context.Context, p Program, s Streams) (code int, err error) {
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
	// A parent's death is told to a child by the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := child.start(binary); err != nil {
		return 0, err
	}
	// Where a running program can be removed, nothing is left even if we are killed.
	if runtime.GOOS == "linux" || runtime.GOOS != "windows" && !p.Again {
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
	binary = filepath.Join(temp, "program")
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
	var said bytes.Buffer
	words := io.MultiWriter(s.Err, &said)
	build.Stdout, build.Stderr = words, words
	build.Cancel = func() error { return interrupt(build.Process) }
	build.WaitDelay = lingerMax
	err = build.Run()
	if ctx.Err() != nil {
		return "", errors.New("interrupted while the program was compiled")
	}
	if _, ok := errors.AsType[*exec.ExitError](err); ok {
		if bytes.Contains(said.Bytes(), []byte("missing go.sum entry")) {
			fmt.Fprintln(s.Err, "topogen: run go mod tidy: generated code imports what go.sum does not have yet")
		}
		return "", ErrCompile
	} else if err != nil {
		return "", fmt.Errorf("compiling the program: %w", err)
	}
	return binary, nil
}
