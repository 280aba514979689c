package memdir

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// TestRemoveAll removes a folder in which a goroutine creates files.
func TestRemoveAll(t *testing.T) {
	for range 20 {
		dir := New(t)
		var creating sync.WaitGroup
		creating.Go(func() {
			for i := 0; os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o600) == nil; i++ {
			}
		})
		for { // until the goroutine has started
			if _, err := os.Stat(filepath.Join(dir, "0")); err == nil {
				break
			}
		}
		if err := RemoveAll(dir); err != nil {
			t.Error(err)
			_ = os.Rename(dir, filepath.Join(New(t), "other")) // ends the goroutine
		}
		creating.Wait()
	}
}
