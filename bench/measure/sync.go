package measure

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// SyncRate is how often per second the disk of a folder syncs 4 KiB in a file of constant
// size, one sync after the other.
func SyncRate(dir string, d time.Duration) (rate float64, err error) {
	f, err := os.Create(filepath.Join(dir, "sync"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	const blocks = 1024
	block := make([]byte, 4096)
	for range blocks {
		if _, err := f.Write(block); err != nil {
			return 0, err
		}
	}
	if err := f.Sync(); err != nil {
		return 0, err
	}
	began, n := time.Now(), 0
	for ; time.Since(began) < d; n++ {
		if _, err := f.WriteAt(block, int64(n%blocks*len(block))); err != nil {
			return 0, err
		}
		if err := syscall.Fdatasync(int(f.Fd())); err != nil {
			return 0, err
		}
	}
	return float64(n) / time.Since(began).Seconds(), nil
}
