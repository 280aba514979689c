package process

import (
	"errors"
	"fmt"
)

// Why a process could not be started, or was ended by its parent.
var (
	// ErrUnsupported: this system has no socket pairs that a process can inherit.
	ErrUnsupported = errors.New("process: this system cannot isolate processors in processes")
	// ErrKilled: by Kill.
	ErrKilled = errors.New("process: killed by Kill")
	// ErrMemory: its resident size was above Settings.Memory.
	ErrMemory = errors.New("process: took more memory than it may")
	// ErrStartup: it did not say hello within Settings.StartupTimeout.
	ErrStartup = errors.New("process: did not start in time")
	// ErrClose: it did not end in time after Close.
	ErrClose = errors.New("process: did not close in time")
)

// Exit says how a process ended.
type Exit struct {
	PID    int
	Code   int    // -1 where a signal ended it
	Signal string // "SIGKILL", "SIGSEGV"; "" where none did
	InCall bool   // it ended while a call was under way, which has failed
}

// Clean reports whether the process ended of its own accord and in order: with
// code 0, and not in a call other than Serve.
func (e Exit) Clean() bool { return e.Code == 0 && e.Signal == "" && !e.InCall }

func (e Exit) String() string {
	switch {
	case e.Signal != "":
		return "was killed by " + e.Signal
	case e.Code < 0:
		return "was killed and has not ended yet" // it waits in the kernel
	}
	return fmt.Sprintf("exited with code %d", e.Code)
}

// ExitError is the error of a process that has ended.
type ExitError struct {
	Processor string
	Instance  int
	Exit      Exit
	Cause     error // why the parent ended it; nil where it did not
}

func (e *ExitError) Error() string {
	text := fmt.Sprintf("process %d of %s[%d] %v", e.Exit.PID, e.Processor, e.Instance, e.Exit)
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

func (e *ExitError) Unwrap() error { return e.Cause }
