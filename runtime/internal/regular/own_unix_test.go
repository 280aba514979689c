//go:build unix

package regular

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestOpenOwn: OpenOwn refuses links and other kinds of files, and creates a file only where
// there is nothing.
func TestOpenOwn(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, err := range []error{
		os.WriteFile("file", []byte("text"), 0o600), os.WriteFile("other", []byte("text"), 0o600),
		os.Symlink("other", "link"), os.Symlink("missing", "dangling"), os.Link("other", "hard"),
		os.Mkdir("folder", 0o700), os.Symlink("folder", "to-folder"), syscall.Mkfifo("pipe", 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	const write = os.O_RDWR | os.O_CREATE
	for _, c := range []struct {
		path string
		flag int
		is   error
		text string
	}{
		{"file", write, nil, ""},
		{"new", write, nil, ""},
		{"to-folder/new", write, nil, ""}, // a folder may be a link
		{"hard", os.O_RDONLY, nil, ""},
		{"none", os.O_RDWR, fs.ErrNotExist, "open none"},
		{"link", write, ErrNotRegular, "open link: it is a symbolic link, not a regular file: remove the link"},
		{"link", os.O_RDONLY, ErrNotRegular, "it is a symbolic link"},
		{"dangling", write, ErrNotRegular, "it is a symbolic link"},
		{"hard", write, ErrManyNames, "open hard: it has 2 names (hard links)"},
		{"hard", os.O_WRONLY, ErrManyNames, "replace it with a copy"},
		{"folder", os.O_RDONLY, ErrNotRegular, "it is a directory"},
		{"pipe", os.O_WRONLY, ErrNotRegular, "it is a named pipe"},
	} {
		f, info, err := OpenOwn(c.path, c.flag)
		if !errors.Is(err, c.is) || err != nil && !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want %q", c.path, err, c.text)
		}
		if err != nil {
			continue
		}
		if !info.Mode().IsRegular() {
			t.Errorf("%s: %v", c.path, info.Mode())
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Lstat("missing"); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the target of the link was created")
	}
}

// TestReplacedByALink: a link that replaces the file after the first check is not followed.
func TestReplacedByALink(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, link := range map[string]func(string, string) error{"soft": os.Symlink, "hard": os.Link} {
		if err := os.WriteFile("other", []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
		replace := func(path string, flag int, mode fs.FileMode) (*os.File, error) {
			if err := link("other", path); err != nil {
				t.Fatal(err)
			}
			return os.OpenFile(path, flag, mode)
		}
		if _, _, err := OpenOwnWith(name, os.O_RDWR|os.O_CREATE, replace); !errors.Is(err, syscall.ELOOP) && !errors.Is(err, syscall.EMLINK) && !errors.Is(err, ErrManyNames) { // EMLINK: FreeBSD
			t.Error(name, err)
		}
	}
}
