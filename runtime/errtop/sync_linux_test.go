package errtop

import (
	"path/filepath"
	"testing"

	"github.com/topogen/topogen/internal/test/failsync"
)

// TestSyncs: the file of errors is durable, or the call returns the error of the sync that
// failed.
func TestSyncs(t *testing.T) {
	failsync.Check(t, ".errors.N.tmp .", func(dir string) func() error {
		k := &Keeper{settings: Settings{Path: filepath.Join(dir, "errors")}, disk: osDisk{}}
		return func() error { return k.replace([]byte("errors")) }
	})
}
