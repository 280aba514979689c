package process

import (
	"errors"
	"fmt"
)

// Reasons why a process could not be started, or was killed by its parent.
var (
	// ErrUnsupported: this system has no socket pairs that a process can inherit.
	ErrUnsupported = errors.New("process: a processor with isolation: process needs Linux, macOS or a BSD")
	// ErrKilled: Kill was called without another cause.
	ErrKilled = errors.New("process: killed by Kill")
	// ErrMemory: the resident size of the process exceeded Settings.Memory.
	ErrMemory = errors.New("process: memory limit exceeded")
	// ErrStartup: the process did not send its hello within Settings.StartupTimeout.
	ErrStartup = errors.New("process: did not start in time")
	// ErrClose: the process did not exit in time after Close.
	ErrClose = errors.New("process: did not close in time")
)

// Exit says how a process ended.
type Exit struct {
	PID    int
	Code   int    // -1 if a signal ended the process
	Signal string // "SIGKILL", "SIGSEGV"; "" if no signal ended the process
	InCall bool   // it ended during a call, which has failed
}

// Clean reports whether the process exited on its own with code 0, and not during a call
// other than Serve.
func (e Exit) Clean() bool { return e.Code == 0 && e.Signal == "" && !e.InCall }

func (e Exit) String() string {
	switch {
	case e.Signal != "":
		return "was killed by " + e.Signal
	case e.Code < 0:
		return "was killed and has not ended yet" // it is blocked in the kernel
	}
	return fmt.Sprintf("exited with code %d", e.Code)
}

// ExitError is the error for a process that has ended.
type ExitError struct {
	Processor string
	Instance  int
	Exit      Exit
	Cause     error // why the parent killed it; nil if the parent did not
}

func (e *ExitError) Error() string {
	text := fmt.Sprintf("process %d of %s[%d] %v", e.Exit.PID, e.Processor, e.Instance, e.Exit)
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

func (e *ExitError) Unwrap() error { return e.Cause }
