package engine

import "errors"

// Errors of Do. After each of them, the outcome of the operation is not known.
var (
	// ErrUnknown is matched if the context of Do ended after the operation was handed over.
	// The operation is carried out, or was. The error also matches the error of the context.
	ErrUnknown = errors.New("engine: the operation was handed over, its outcome is not known")
	// ErrStopped is matched if the store failed while the operation was carried out.
	ErrStopped = errors.New("engine: the engine has stopped")
)

// Errors of Connect.
var (
	ErrClosed          = errors.New("engine: closed")
	ErrConnections     = errors.New("engine: too many connections")
	ErrConnectionNames = errors.New("engine: the group and the pid of a connection must not be empty, and the group must not contain a slash")
)
