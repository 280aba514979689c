// Package regular opens regular files, and rejects all other kinds of files. It also creates
// new ones.
//
//	file, info, err := regular.Open(path) // returns an error at once for a named pipe
//
// A path from a user may lead to any kind of file. Opening a named pipe blocks until
// another process opens its other end. Reading a terminal or a device may never end,
// and opening some devices already has an effect.
package regular

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// ErrNotRegular is matched by the error of [Open] for a file that is not regular.
var ErrNotRegular = errors.New("not a regular file")

// Open opens a regular file for reading. It follows symbolic links. The error for any
// other kind of file names the kind and matches [ErrNotRegular].
func Open(path string) (*os.File, fs.FileInfo, error) {
	info, err := os.Stat(path)
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, nil, &fs.PathError{Op: "open", Path: path, Err: e.Err} // the caller need not know that Open calls Stat
	}
	if err == nil {
		err = check(path, info)
	}
	if err != nil {
		return nil, nil, err
	}
	return open(path)
}

// CreateNew creates an empty file. The caller writes its content, and then renames it to replace
// another file. If an earlier attempt failed, its file may still be at the path. CreateNew removes
// this file instead of writing over it. Otherwise the old content could reappear if the disk loses
// the new content, because a sync failed or the disk reported a sync that it had not done.
func CreateNew(path string) (*os.File, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
}

// open checks the kind of the file again after opening it, because the file may have
// been replaced. O_NONBLOCK makes the opening of a named pipe return at once, and has
// no effect on a regular file.
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
		_ = file.Close() // no data can be lost
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

// Kind describes the kind of a file, for messages: "a named pipe".
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
