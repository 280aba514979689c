// Package regular opens regular files alone.
//
//	file, info, err := regular.Open(path) // a named pipe is an error at once
//
// A path that a user names may lead to anything. Opening a named pipe blocks until
// another process opens its other end, reading a terminal or a device may never
// end, and opening some devices has an effect by itself.
package regular

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// ErrNotRegular is what an error of [Open] matches where the path leads to
// something else than a regular file.
var ErrNotRegular = errors.New("not a regular file")

// Open opens a regular file for reading; symbolic links are followed. The error for
// anything else says what it is and matches [ErrNotRegular].
func Open(path string) (*os.File, fs.FileInfo, error) {
	info, err := os.Stat(path)
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, nil, &fs.PathError{Op: "open", Path: path, Err: e.Err} // how it is opened concerns no caller
	}
	if err == nil {
		err = check(path, info)
	}
	if err != nil {
		return nil, nil, err
	}
	return open(path)
}

// open does not rely on what was at the path a moment ago: the file may have been
// replaced. O_NONBLOCK makes opening a named pipe return at once, and does nothing
// to a regular file.
func open(path string) (*os.File, fs.FileInfo, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err == nil {
		err = check(path, info)
	}
	if err != nil {
		_ = file.Close() // nothing was written to it
		return nil, nil, err
	}
	return file, info, nil
}

func check(path string, info fs.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	return &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("it is %s, %w", Kind(info.Mode()), ErrNotRegular)}
}

// Kind says what a file is, for messages: "a named pipe".
func Kind(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return "a regular file"
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "a special file"
}
