package errtop

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	tempSuffix = ".tmp"
	tempMaxAge = time.Hour // no dump takes longer: the process that wrote an older file was killed
	brokenMax  = 9         // most broken files that are kept; after that the last name is reused
)

// Read reads the file of a keeper, even while the keeper writes it. The most frequent
// error comes first.
func Read(path string) ([]Entry, error) {
	entries, err := read(osDisk{}, path)
	if _, named := errors.AsType[*fs.PathError](err); err != nil && !named {
		return nil, &fs.PathError{Op: "read", Path: path, Err: err}
	}
	return entries, err
}

// read opens only regular files, because opening a pipe could block.
func read(d disk, path string) ([]Entry, error) {
	info, err := d.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, ErrNotRegular
	case info.Size() > fileMax:
		return nil, fmt.Errorf("%w: it has %d bytes, at most %d are expected", ErrTooLarge, info.Size(), fileMax)
	}
	f, err := d.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return decode(f)
}

// restore loads the records of the file, after checking that the file can be written.
func (k *Keeper) restore(now time.Time) error {
	path := k.settings.Path
	probe, err := k.disk.CreateTemp(filepath.Dir(path), k.tempPattern())
	if err != nil {
		return fmt.Errorf("errtop: cannot create a file in the folder of %s: %w", path, err)
	}
	if err := errors.Join(probe.Close(), k.disk.Remove(probe.Name())); err != nil {
		return fmt.Errorf("errtop: %w", err)
	}
	k.removeTemps(now)
	entries, err := read(k.disk, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, ErrNotRegular):
		return &fs.PathError{Op: "open", Path: path, Err: err}
	case err != nil:
		return k.renameBroken(err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ranking().restore(entries, now.UnixMicro())
	k.prune(now)
	return nil
}

// restore adds the entries of a file, in the order in which they were last seen, so that
// the newest entry stays even if there are too many. A time in the future, or no time,
// counts as now.
func (r *ranking) restore(entries []Entry, now int64) {
	type seen struct {
		Entry
		last int64
	}
	list := make([]seen, 0, len(entries))
	for _, e := range entries {
		last := now
		if !e.Last.IsZero() {
			last = min(now, e.Last.UnixMicro())
		}
		list = append(list, seen{e, last})
	}
	slices.SortFunc(list, func(a, b seen) int {
		return cmp.Or(cmp.Compare(a.last, b.last), cmp.Compare(a.Count, b.Count), cmp.Compare(a.Text, b.Text))
	})
	for _, e := range list {
		r.add(e.Text, max(1, e.Count), e.last)
	}
}

// renameBroken renames a file that cannot be read, so that it is not overwritten.
func (k *Keeper) renameBroken(cause error) error {
	path := k.settings.Path
	target := path + ".broken"
	for i := 2; i <= brokenMax; i++ {
		if _, err := k.disk.Stat(target); errors.Is(err, fs.ErrNotExist) {
			break
		}
		target = path + ".broken" + strconv.Itoa(i)
	}
	if err := k.disk.Rename(path, target); err != nil {
		return fmt.Errorf("errtop: cannot read %s (%w), and cannot rename it: %w", path, cause, err)
	}
	k.settings.log().Warn("errtop: the file cannot be read and was renamed", "path", path, "renamed_to", target, "error", cause)
	return nil
}

// replace writes a temporary file in the same folder, syncs it, and renames it to the
// path.
func (k *Keeper) replace(b []byte) error {
	path := k.settings.Path
	f, err := k.disk.CreateTemp(filepath.Dir(path), k.tempPattern())
	if err != nil {
		return fmt.Errorf("errtop: %w", err)
	}
	if info, err := k.disk.Stat(path); err == nil {
		_ = f.Chmod(info.Mode().Perm()) // keep the permissions of the old file if possible
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = k.disk.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("errtop: %w", errors.Join(err, k.disk.Remove(f.Name())))
	}
	if err := k.disk.Sync(filepath.Dir(path)); err != nil {
		return fmt.Errorf("errtop: %w", err)
	}
	return nil
}

func (k *Keeper) tempPattern() string {
	return "." + filepath.Base(k.settings.Path) + ".*" + tempSuffix
}

// removeTemps removes temporary files of processes that were killed while they wrote. If
// it fails, these files stay, which is harmless.
func (k *Keeper) removeTemps(now time.Time) {
	folder := filepath.Dir(k.settings.Path)
	prefix := "." + filepath.Base(k.settings.Path) + "."
	entries, err := k.disk.List(folder)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), prefix) || !strings.HasSuffix(e.Name(), tempSuffix) {
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && now.Sub(info.ModTime()) > tempMaxAge {
			_ = k.disk.Remove(filepath.Join(folder, e.Name()))
		}
	}
}
