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

	// tempAgeMax is the age at which a temporary file of any process is stray: no build
	// takes that long. It matters for folders that several hosts share, because a host
	// cannot see the processes of the others.
	tempAgeMax = time.Hour
)

// owner is the process that makes temporary files. Their names contain its name, so that a
// build does not remove files that another build is writing.
type owner struct {
	host  string
	pid   int
	alive func(pid int) bool
	now   func() time.Time
}

func thisProcess() owner {
	name, err := os.Hostname()
	if err != nil {
		name = "" // hosts without a name look like one host; tempAgeMax and pid still distinguish
	}
	sum := sha256.Sum256([]byte(name))
	return owner{host: hex.EncodeToString(sum[:4]), pid: os.Getpid(), alive: alive, now: time.Now}
}

// temp returns a new temporary name in the folder of name.
func (o owner) temp(name string) string {
	return path.Join(path.Dir(name), fmt.Sprintf("%s%s-%d-%016x%s", tempPrefix, o.host, o.pid, rand.Uint64(), tempSuffix))
}

// stray reports whether a file is a temporary file that no process will rename.
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

// alive reports true in case of doubt: a stray file does less harm than a lost one.
func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer p.Release()
	err = p.Signal(syscall.Signal(0))
	return !errors.Is(err, os.ErrProcessDone) && !errors.Is(err, syscall.ESRCH)
}

// Sweep removes the temporary files that killed builds have left in these folders. It keeps
// the files of running builds. It ignores errors, because the next build sweeps again.
func Sweep(folders ...string) {
	who := thisProcess()
	for _, folder := range folders {
		if d, err := openRoot(folder); err == nil {
			sweep(d, ".", who)
			_ = d.Close()
		}
	}
}

// sweep removes stray temporary files. It ignores errors, because the outputs are complete
// and the next build sweeps again.
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
