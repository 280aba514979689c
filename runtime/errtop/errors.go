package errtop

import "errors"

// Errors of Open and Read, in addition to those of the disk.
var (
	// ErrSettings: a setting is out of range. The error names the setting.
	ErrSettings = errors.New("errtop: settings")
	// ErrFormat: the file is in another format. The error names the first invalid byte.
	ErrFormat = errors.New("errtop: not a file of errors")
	// ErrTooLarge: the file is larger than any file that a keeper writes.
	ErrTooLarge = errors.New("errtop: the file is too large")
	// ErrNotRegular: the path is a folder, a pipe or a device.
	ErrNotRegular = errors.New("errtop: not a regular file")
)
