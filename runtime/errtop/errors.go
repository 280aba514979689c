package errtop

import "errors"

// What Open and Read return, besides errors of the disk.
var (
	// ErrSettings: a setting is out of its range. The error names it.
	ErrSettings = errors.New("errtop: settings")
	// ErrFormat: the file holds something else. The error says from which byte on.
	ErrFormat = errors.New("errtop: not a file of errors")
	// ErrTooLarge: the file is larger than any that a keeper writes.
	ErrTooLarge = errors.New("errtop: the file is too large")
	// ErrNotRegular: the path names a folder, a pipe or a device.
	ErrNotRegular = errors.New("errtop: not a regular file")
)
