package errtop

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"
)

// Settings of a keeper. Fields that are zero have their default.
type Settings struct {
	Path      string        // the file, or a link to it; "": records stay in memory
	Top       int           // most records that are kept; default 1000
	Keep      time.Duration // a record that was not seen for this long is removed; default 10 minutes
	DumpEvery time.Duration // shortest time between two dumps of the file; default 1 second
	// Crash ends the process at the first error, which is printed with its stack and not
	// recorded. It is for debugging: Catch does not recover a panic then.
	Crash  bool
	Logger *slog.Logger // for warnings of the keeper; default slog.Default()
}

const (
	topDefault       = 1000             // more than people read
	topMax           = 4096             // records; keeps files below 70 MB
	keepDefault      = 10 * time.Minute // long enough for an error that occurs every few minutes to keep its count
	dumpEveryDefault = time.Second      // a sync takes milliseconds and wears out disks
	linksMax         = 40               // the limit of Linux
	dumpEveryMin     = time.Millisecond // faster than disks sync
)

// checked returns the settings with defaults.
func (s Settings) checked() (Settings, error) {
	switch {
	case s.Top < 0 || s.Top > topMax:
		return s, fmt.Errorf("%w: top must be between 1 and %d, got %d", ErrSettings, topMax, s.Top)
	case s.Keep < 0:
		return s, fmt.Errorf("%w: keep must not be negative, got %v", ErrSettings, s.Keep)
	case s.DumpEvery != 0 && s.DumpEvery < dumpEveryMin:
		return s, fmt.Errorf("%w: dump_every must be at least %v, got %v", ErrSettings, dumpEveryMin, s.DumpEvery)
	}
	if s.Path != "" {
		path, err := filepath.Abs(s.Path) // the working directory may change
		if err != nil {
			return s, fmt.Errorf("%w: path: %w", ErrSettings, err)
		}
		if s.Path, err = followed(path); err != nil {
			return s, fmt.Errorf("%w: path: %w", ErrSettings, err)
		}
	}
	return s.withDefaults(), nil
}

// followed resolves path if it is a symbolic link. The target need not exist. Links in
// the folders of the path are not resolved, because a rename follows them.
func followed(path string) (string, error) {
	for range linksMax {
		target, err := os.Readlink(path)
		if err != nil {
			return path, nil // not a link
		}
		if !filepath.IsAbs(target) {
			folder, err := filepath.EvalSymlinks(filepath.Dir(path)) // ".." after a linked folder refers to the target of the link
			if err != nil {
				return "", err
			}
			target = filepath.Join(folder, target)
		}
		path = target
	}
	return "", fmt.Errorf("%s leads through more than %d symbolic links", path, linksMax)
}

func (s Settings) withDefaults() Settings {
	if s.Top == 0 {
		s.Top = topDefault
	}
	if s.Keep == 0 {
		s.Keep = keepDefault
	}
	if s.DumpEvery == 0 {
		s.DumpEvery = dumpEveryDefault
	}
	return s
}

func (s Settings) log() *slog.Logger {
	if s.Logger != nil {
		return s.Logger
	}
	return slog.Default()
}
