package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/store"
)

// A blockDevice is a file system of ext4 whose disk has less space than it says, like a thin
// volume: new blocks cannot be written while it is full.
type blockDevice struct {
	t       *testing.T
	back    string // a file system in memory with the image of the disk
	mounted string
}

func newBlockDevice(t *testing.T) *blockDevice {
	t.Helper()
	d := &blockDevice{t: t, back: mount(t, "size=24m"), mounted: t.TempDir()}
	must(t, os.WriteFile(filepath.Join(d.back, "image"), nil, 0o600))
	must(t, os.Truncate(filepath.Join(d.back, "image"), 64<<20))
	if out, err := exec.Command("mkfs.ext4", "-q", "-O", "^has_journal", "-E", "nodiscard,lazy_itable_init=0", filepath.Join(d.back, "image")).CombinedOutput(); err != nil {
		t.Skipf("needs mkfs.ext4: %v: %s", err, out)
	}
	d.mount()
	t.Cleanup(func() { _ = syscall.Unmount(d.mounted, syscall.MNT_DETACH) })
	return d
}

func (d *blockDevice) mount() {
	d.t.Helper()
	if out, err := exec.Command("mount", "-o", "loop", filepath.Join(d.back, "image"), d.mounted).CombinedOutput(); err != nil {
		d.t.Skipf("needs permission to mount: %v: %s", err, out)
	}
}

// remount mounts the file system again: the memory of the system has nothing of it then.
func (d *blockDevice) remount() {
	d.t.Helper()
	must(d.t, syscall.Unmount(d.mounted, 0))
	d.mount()
}

// fill uses all space of the disk that is left. The result gives it back.
func (d *blockDevice) fill() (free func()) {
	d.t.Helper()
	path := filepath.Join(d.back, "filler")
	if err := os.WriteFile(path, make([]byte, 64<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		d.t.Fatalf("the disk is not full: %v", err)
	}
	return func() { must(d.t, os.Remove(path)) }
}

// TestDiskFailsForAMoment: after a sync has failed, the next process reads what the disk has,
// and not what the system has in memory. Transactions that it answers survive. If the disk has lost
// what it had answered before, the store is refused at once.
func TestDiskFailsForAMoment(t *testing.T) {
	speed.Landing(t)
	survived, skipped := 0, false
	for range 50 {
		t.Run("", func(t *testing.T) {
			defer func() { skipped = t.Skipped() }()
			if diskFailsForAMoment(t) {
				survived++
			}
		})
		if survived == 3 || skipped || t.Failed() {
			break
		}
	}
	if survived == 0 && !skipped {
		t.Error("the disk kept what was answered in none of the rounds: the test tests nothing")
	}
}

// diskFailsForAMoment reports whether the disk had kept what was answered before.
func diskFailsForAMoment(t *testing.T) bool {
	d := newBlockDevice(t)
	dir := filepath.Join(d.mounted, "promises")
	write := func(s store.Store, i int) error {
		return s.Update(func(tx store.Tx) error {
			tx.Put(core.Table(1), []byte(strconv.Itoa(i)), bytes.Repeat([]byte("v"), 3000))
			return nil
		})
	}
	s := open(t, dir, store.Options{})
	n := 0
	for ; n < 20; n++ {
		must(t, write(s, n))
	}
	free := d.fill()
	var err error
	for i := n; err == nil && i < n+1000; i++ {
		if err = write(s, i); err == nil {
			n = i + 1
		}
	}
	if !errors.Is(err, store.ErrFailed) {
		t.Fatalf("no sync has failed: %v", err)
	}
	t.Log(n, err)
	_ = s.Close() // its file is as the failed sync left it
	free()
	s, err = store.Open(dir, store.Options{})
	if _, ok := errors.AsType[*store.DamageError](err); ok {
		t.Log(err) // a loop device counts a write as complete of which the full disk took a part
		return false
	}
	must(t, err)
	present(t, s, n)
	for i := range 200 {
		must(t, write(s, n+i))
	}
	n += 200
	must(t, s.Close())
	d.remount()
	s = open(t, dir, store.Options{})
	present(t, s, n)
	must(t, s.Close())
	return true
}

// present checks that a store has the records 0 to n-1.
func present(t *testing.T, s store.Store, n int) {
	t.Helper()
	content := dump(t, s)
	for i := range n {
		if _, ok := content[fmt.Sprintf("\x01%d", i)]; !ok {
			t.Fatalf("record %d of %d is missing, the store has %d", i, n, len(content))
		}
	}
}
