package durable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/topogen/topogen/runtime/topo"
)

// Why the context of a durable function has ended: context.Cause returns one of these.
var (
	// ErrCanceled: the promise was canceled. Wait returns it too.
	ErrCanceled = fmt.Errorf("durable: the promise was canceled: %w", context.Canceled)
	// ErrTimedOut: the deadline of the promise has passed. Wait returns it too.
	ErrTimedOut = fmt.Errorf("durable: the promise timed out: %w", context.DeadlineExceeded)
	// ErrLeaseLost: the worker could not extend its lease in time, or another worker has
	// the task. Nothing more of this activation is recorded.
	ErrLeaseLost = errors.New("durable: the lease of the task is lost")
	// ErrStopping: the worker stops. Another worker continues the execution. It matches
	// topo.ErrStopping.
	ErrStopping = fmt.Errorf("durable: the worker is stopping: %w", topo.ErrStopping)
)

// Errors of calls.
var (
	// ErrDiverged: the function took a path that differs from the recorded one. The error
	// names the execution, the position and both steps. The task is halted.
	ErrDiverged = errors.New("durable: the function takes another path than the recorded one")
	// ErrNoFunction: a replay has found an execution that has not ended, and whose function the
	// program does not have. No worker would continue it.
	ErrNoFunction = errors.New("durable: an execution has not ended, and the program does not have its function")
	// ErrArgument: the argument of a call cannot be decoded as the type that its function has now, or
	// names an instance that does not exist. The promise is rejected.
	ErrArgument = errors.New("durable: the argument of the call does not fit")
	// ErrMisuse: a durable function was called inside a step, or from a goroutine that
	// does not run the function.
	ErrMisuse = errors.New("durable: wrong use of a durable context")
	// ErrEnded: a durable context was used after its function ended.
	ErrEnded = errors.New("durable: the execution has ended")
	// ErrTooLong: the execution has more records than Config.Records allows.
	ErrTooLong = errors.New("durable: the execution has too many records")
	// ErrRefused: the backend refused an operation. The error has the sentence with the
	// reason.
	ErrRefused = errors.New("durable: the server refused an operation")
	// ErrUnavailable: the backend could not be reached, so that the outcome is unknown.
	ErrUnavailable = errors.New("durable: the server is unavailable")
	// ErrHalted: the execution is halted, because its function diverged or an operator has
	// stopped it. When it was continued, Wait can be called again.
	ErrHalted = errors.New("durable: the execution is halted")
	// ErrNotFound: the promise does not exist.
	ErrNotFound = errors.New("durable: no such promise")
)

// An Error is a failure that was recorded: the error of a step or of a durable function.
// A record keeps the fields below only, so Step and Wait return an Error the first
// time as well as on each replay, and never the original error.
type Error struct {
	Name    string // the type of the original error, or its name in TypeScript
	Message string
	Final   bool // another attempt would not change it: the original error was marked with Final
}

// Error returns the message.
func (e *Error) Error() string {
	if e.Message == "" {
		return e.Name
	}
	return e.Message
}

// Is reports whether target is an *Error with the same name and, if it has one, the same
// message. So errors.Is(err, &durable.Error{Name: "OutOfStock"}) tests for a name.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Name == e.Name && (t.Message == "" || t.Message == e.Message)
}

// A PanicError is a panic of a durable function or of a step.
type PanicError struct {
	Value any
	Stack []byte // of the goroutine that panicked
}

// Error returns the value of the panic as text.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap returns the value of the panic if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Final marks an error that another attempt would not change. A step or a function that
// returns it is not retried, and neither is a function that returns the Error of such a step or
// of such a call. Final(nil) is nil.
func Final(err error) error {
	if err == nil {
		return nil
	}
	return &finalError{err}
}

type finalError struct{ error }

func (e *finalError) Unwrap() error { return e.error }

// retryable reports whether another attempt may help.
func retryable(err error) bool {
	var final *finalError
	var e *Error
	return !errors.As(err, &final) && !(errors.As(err, &e) && e.Final)
}

// errorJSON is the form in which the SDKs record an error.
type errorJSON struct {
	Type    string `json:"__type"`
	Name    string `json:"name"`
	Message string `json:"message"`
	Final   bool   `json:"final,omitempty"` // of this package; the SDKs ignore it
}

// recorded is the record of an error.
func recorded(err error) *Error {
	final := !retryable(err)
	var e *Error
	if errors.As(err, &e) {
		return &Error{Name: bounded(e.Name), Message: bounded(err.Error()), Final: final}
	}
	var p *PanicError
	if errors.As(err, &p) {
		return &Error{Name: "panic", Message: bounded(p.Error()), Final: final}
	}
	for {
		if f, ok := err.(*finalError); ok {
			err = f.error
			continue
		}
		return &Error{Name: errorName(err), Message: bounded(err.Error()), Final: final}
	}
}

// errorName is the name of an error's type without its package. The types of errors.New
// and fmt.Errorf say nothing, so they are "Error", as in TypeScript.
func errorName(err error) string {
	t := reflect.TypeOf(err)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch name := t.Name(); {
	case name == "", strings.HasPrefix(t.PkgPath()+"/", "errors/"), t.PkgPath() == "fmt", name == "joinError":
		return "Error"
	default:
		return name
	}
}

// messageMax bounds the message of a recorded error in bytes. A message with the output of
// a program in it would otherwise make every replay carry it.
const messageMax = 16 << 10

func bounded(message string) string {
	if len(message) > messageMax {
		message = message[:messageMax] + "…"
	}
	return strings.ToValidUTF8(message, "�")
}

// rejection is the error of a rejected promise with this data.
func rejection(data []byte) error {
	var e errorJSON
	if json.Unmarshal(data, &e) == nil && (e.Type == "error" || e.Type == "aggregate_error") {
		if e.Name == "" {
			e.Name = "Error"
		}
		return &Error{Name: e.Name, Message: e.Message, Final: e.Final}
	}
	// TypeScript may reject with any value.
	var text string
	if json.Unmarshal(data, &text) != nil {
		text = bounded(string(data))
	}
	return &Error{Name: "Error", Message: text}
}
