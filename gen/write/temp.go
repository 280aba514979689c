package write

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	tempPrefix = ".topogen-" // the dot hides it from the go command
	tempSuffix = ".tmp"

	// tempAgeMax is when a temporary is stray whoever made it: no build takes
	// that long. It is for machines that share a folder, whose processes we
	// cannot see.
	tempAgeMax = time.Hour
)

// owner is the process that makes temporaries. Its name is part of theirs, so
// that one build does not take away what another is still writing.
type owner struct {
	host  string
	pid   int
	alive func(pid int) bool
	now   func() time.Time
}

func thisProcess() owner {
	name, err := os.Hostname()
	if err != nil {
		name = "" // all such machines look like one; tempAgeMax and pid still tell
	}
	sum := sha256.Sum256([]byte(name))
	return owner{host: hex.EncodeToString(sum[:4]), pid: os.Getpid(), alive: alive, now: time.Now}
}

// temp returns a fresh name beside name.
func (o owner) temp(name string) string {
	return path.Join(path.Dir(name), fmt.Sprintf("%s%s-%d-%016x%s", tempPrefix, o.host, o.pid, rand.Uint64(), tempSuffix))
}

// stray reports whether a file is a temporary that nobody will rename any more.
func (o owner) stray(base string, info fs.FileInfo) bool {
	middle, ok := strings.CutPrefix(base, tempPrefix)
	if !ok || !info.Mode().IsRegular() {
		return false
	}
	if middle, ok = strings.CutSuffix(middle, tempSuffix); !ok {
		return false
	}
	if o.now().Sub(info.ModTime()) > tempAgeMax {
		return true
	}
	parts := strings.Split(middle, "-")
	if len(parts) != 3 || parts[0] != o.host {
		return false
	}
	pid, err := strconv.Atoi(parts[1])
	return err == nil && pid > 0 && pid != o.pid && !o.alive(pid)
}

// alive errs on the side of alive: a stray file costs less than a lost one.
func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer p.Release()
	err = p.Signal(syscall.Signal(0))
	return !errors.Is(err, os.ErrProcessDone) && !errors.Is(err, syscall.ESRCH)
}

// Sweep removes the temporary files that builds have left in these folders because
// they were killed. Those of builds that run stay. Errors are left alone: the next
// build sweeps again.
func Sweep(folders ...string) {
	who := thisProcess()
	for _, folder := range folders {
		if d, err := openRoot(folder); err == nil {
			sweep(d, ".", who)
			_ = d.Close()
		}
	}
}

// sweep removes stray temporaries. Errors are left alone: the outputs are in
// place, and the next build sweeps again.
func sweep(d disk, folder string, o owner) {
	names, err := d.List(folder)
	if err != nil {
		return
	}
	for _, base := range names {
		if !strings.HasPrefix(base, tempPrefix) {
			continue
		}
		if info, err := d.Lstat(path.Join(folder, base)); err == nil && o.stray(base, info) {
			_ = d.Remove(path.Join(folder, base))
		}
	}
}
