package broadcast

import (
	"testing"

	"github.com/topogen/topogen/internal/test/failsync"
	"github.com/topogen/topogen/runtime/cluster/table"
)

// TestSyncs: the log of a node is durable, or the call returns the error of the sync that failed.
func TestSyncs(t *testing.T) {
	for name, c := range map[string]struct {
		want string
		call func(dir string, l *file) error
	}{
		"open":     {"wal/domain_table.N.N.nN.bin wal .", func(dir string, _ *file) error { _, _, err := openFile(dir, "n2"); return err }},
		"append":   {"wal/domain_table.N.N.nN.bin", func(_ string, l *file) error { return l.append(&entry{revision: table.Revision{Term: 1, Index: 1}}) }},
		"snapshot": {"wal/domain_table.N.N.nN.bin.tmp wal", func(_ string, l *file) error { return l.install(table.Revision{Term: 1, Index: 1}, []byte("a state")) }},
	} {
		t.Run(name, func(t *testing.T) {
			failsync.Check(t, c.want, func(dir string) func() error {
				l, _, err := openFile(dir, "n1")
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = l.close() })
				return func() error { return c.call(dir, l) }
			})
		})
	}
}
