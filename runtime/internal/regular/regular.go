// Package regular opens regular files, and rejects all other kinds of files. It also creates
// new ones.
//
//	file, info, err := regular.Open(path)                // returns an error at once for a named pipe
//	file, info, err := regular.OpenOwn(path, os.O_RDWR)  // also for a symbolic link
//
// A path from a user may lead to any kind of file. Opening a named pipe blocks until
// another process opens its other end. Reading a terminal or a device may never end,
// and opening some devices already has an effect.
//
// A program creates the files of its own folders itself, so none of them is a link. If others
// can write the folder, a link in place of such a file leads the program to write into a file
// of its user that the others cannot write.
package regular

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// ErrNotRegular is matched by the error of [Open] and [OpenOwn] for a file that is not regular.
var ErrNotRegular = errors.New("not a regular file")

// ErrManyNames is matched by the error of [OpenOwn] for a file with more than one name.
var ErrManyNames = errors.New("a file that this program writes must have one name")

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

// OpenOwn opens a regular file of a folder that belongs to the program. The flag is the one of
// [os.OpenFile], without O_TRUNC. OpenOwn does not follow a symbolic link at the end of the path;
// folders in the path may be links. A file that is opened for writing must have one name, because
// what is written changes the file under all of its names. The error says what to do.
func OpenOwn(path string, flag int) (*os.File, fs.FileInfo, error) {
	return OpenOwnWith(path, flag, os.OpenFile)
}

// OpenOwnWith is [OpenOwn] with a function in place of [os.OpenFile].
func OpenOwnWith(path string, flag int, open func(string, int, fs.FileMode) (*os.File, error)) (*os.File, fs.FileInfo, error) {
	before, err := os.Lstat(path)
	if err == nil {
		err = checkOwn(path, flag, before)
	} else if flag&os.O_CREATE != 0 && errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, nil, &fs.PathError{Op: "open", Path: path, Err: e.Err}
	}
	file, err := open(path, flag|noFollow|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, nil, err
	}
	info, err := recheckOwn(file, path, flag)
	if err != nil {
		_ = file.Close() // nothing was written
		return nil, nil, err
	}
	return file, info, nil
}

// recheckOwn checks the file that was opened. The path may have led to another file during the
// first check.
func recheckOwn(file *os.File, path string, flag int) (fs.FileInfo, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if noFollow == 0 { // the system has followed a link
		named, err := os.Lstat(path)
		if err != nil {
			return nil, err
		}
		if !os.SameFile(named, info) {
			return nil, &fs.PathError{Op: "open", Path: path, Err: errors.New("the file was replaced while it was opened")}
		}
	}
	return info, checkOwn(path, flag, info)
}

func checkOwn(path string, flag int, info fs.FileInfo) error {
	if info.Mode()&fs.ModeSymlink != 0 {
		return &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("it is %s, %w: remove the link, and put the file itself there if this program made it", Kind(info.Mode()), ErrNotRegular)}
	}
	if n := names(info); n > 1 && info.Mode().IsRegular() && flag&(os.O_WRONLY|os.O_RDWR) != 0 {
		return &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("it has %d names (hard links), and %w: replace it with a copy of it, or remove the other names", n, ErrManyNames)}
	}
	return check(path, info)
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
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "a special file"
}
