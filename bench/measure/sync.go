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
	seconds, err := Syncs(dir, d)
	if err != nil {
		return 0, err
	}
	var sum float64
	for _, s := range seconds {
		sum += s
	}
	return float64(len(seconds)) / sum, nil
}

// Syncs syncs as [SyncRate] does, and returns the seconds that each write with its sync
// took.
func Syncs(dir string, d time.Duration) (seconds []float64, err error) {
	f, err := os.Create(filepath.Join(dir, "sync"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	const blocks = 1024
	block := make([]byte, 4096)
	for range blocks {
		if _, err := f.Write(block); err != nil {
			return nil, err
		}
	}
	if err := f.Sync(); err != nil {
		return nil, err
	}
	end := time.Now().Add(d)
	for began := time.Now(); began.Before(end); {
		if _, err := f.WriteAt(block, int64(len(seconds)%blocks*len(block))); err != nil {
			return nil, err
		}
		if err := syscall.Fdatasync(int(f.Fd())); err != nil {
			return nil, err
		}
		now := time.Now()
		seconds = append(seconds, now.Sub(began).Seconds())
		began = now
	}
	return seconds, nil
}
