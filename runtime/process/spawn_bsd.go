//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package process

import (
	"errors"
	"os"
	"sync"
	"syscall"
)

// atStart is the file of the executable when this process began.
var atStart = sync.OnceValues(executableFile)

func init() { atStart() }

func executableFile() (os.FileInfo, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return os.Stat(path)
}

// executable is the file that this process was started from, unless it is another
// by now: its code would not understand ours.
func executable() (string, error) {
	before, err := atStart()
	if err != nil {
		return "", err
	}
	now, err := executableFile()
	if err != nil {
		return "", err
	}
	if !os.SameFile(before, now) || before.Size() != now.Size() || !before.ModTime().Equal(now.ModTime()) {
		return "", errors.New("the executable was replaced while it runs")
	}
	return os.Executable()
}

// attributes: a process group of its own, since a terminal's Ctrl-C goes to all of
// a group.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func waitForEnd(int) bool { return false } // there is no reliable way

func (c *Child) watchMemory() (stop func()) { return func() {} } // GOMEMLIMIT alone
