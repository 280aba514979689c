//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package process

import (
	"errors"
	"os"
	"sync"
	"syscall"
)

// fileAtStart describes the executable's file when this process began.
var fileAtStart = sync.OnceValues(executableFile)

func init() { fileAtStart() }

func executableFile() (os.FileInfo, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return os.Stat(path)
}

// executable returns the path of this process's executable. It fails if the file was
// replaced since the start, because another build uses another protocol and plan.
func executable() (string, error) {
	before, err := fileAtStart()
	if err != nil {
		return "", err
	}
	now, err := executableFile()
	if err != nil {
		return "", err
	}
	if !os.SameFile(before, now) || before.Size() != now.Size() || !before.ModTime().Equal(now.ModTime()) {
		return "", errors.New("the executable was replaced while the program runs")
	}
	return os.Executable()
}

// attributes puts the process into its own process group, because Ctrl-C on a terminal
// goes to a whole group.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func waitForEnd(int) bool { return false } // these systems cannot wait reliably without reaping

func (c *Child) watchMemory() (stop func()) { return func() {} } // only GOMEMLIMIT applies
