package errtop

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"
)

// Settings of a keeper. Those that are zero have their default.
type Settings struct {
	Path      string        // the file, or a link to it; "": what is recorded stays in memory
	Top       int           // how many records are kept; 1000
	Keep      time.Duration // after which a record that is not seen goes; 10 minutes
	DumpEvery time.Duration // how often, at most, the file is written; 1 second
	// Crash ends the process at the first error, which is printed with its stack
	// and not recorded. For debugging: a panic within Catch is not recovered then.
	Crash  bool
	Logger *slog.Logger // where the keeper warns; slog.Default()
}

const (
	topDefault       = 1000             // rast.md 2.11: nobody examines more
	topMax           = 4096             // records; keeps files below 70 MB
	keepDefault      = 10 * time.Minute // as the original has it
	dumpEveryDefault = time.Second      // a sync takes milliseconds and wears out disks
	linksMax         = 40               // as Linux has it
	dumpEveryMin     = time.Millisecond // the original's period; faster than disks sync
)

// checked returns the settings with their defaults.
func (s Settings) checked() (Settings, error) {
	switch {
	case s.Top < 0 || s.Top > topMax:
		return s, fmt.Errorf("%w: top must be between 1 and %d, not %d", ErrSettings, topMax, s.Top)
	case s.Keep < 0:
		return s, fmt.Errorf("%w: keep must not be negative, it is %v", ErrSettings, s.Keep)
	case s.DumpEvery != 0 && s.DumpEvery < dumpEveryMin:
		return s, fmt.Errorf("%w: dump_every must be at least %v, not %v", ErrSettings, dumpEveryMin, s.DumpEvery)
	}
	if s.Path != "" {
		path, err := filepath.Abs(s.Path) // the folder that the process is in may change
		if err != nil {
			return s, fmt.Errorf("%w: path: %w", ErrSettings, err)
		}
		if s.Path, err = followed(path); err != nil {
			return s, fmt.Errorf("%w: path: %w", ErrSettings, err)
		}
	}
	return s.withDefaults(), nil
}

// followed is the path of the file that path, a symbolic link perhaps, leads to;
// there need not be one yet. Links to folders on the way need no such thing: a
// rename follows these itself.
func followed(path string) (string, error) {
	for range linksMax {
		target, err := os.Readlink(path)
		if err != nil {
			return path, nil // it is no link
		}
		if !filepath.IsAbs(target) {
			folder, err := filepath.EvalSymlinks(filepath.Dir(path)) // ".." of a link to a folder is that of the folder
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
