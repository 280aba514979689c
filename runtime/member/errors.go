package member

import "errors"

// Errors that callers can test with errors.Is.
var (
	// ErrConfig is returned if a setting is invalid.
	ErrConfig = errors.New("member: invalid setting")

	// ErrMalformed is returned for a message that is not in the format of this version.
	// The message was counted and has had no effect.
	ErrMalformed = errors.New("member: malformed message")

	// ErrClosed is returned before Start and after Close.
	ErrClosed = errors.New("member: the detector does not run")

	// ErrAlive is returned by Remove for a member that is not Dead.
	ErrAlive = errors.New("member: only a dead member can be removed")

	// ErrUnknown is returned by Remove for a name that is not in the list of members.
	ErrUnknown = errors.New("member: there is no such member")
)
