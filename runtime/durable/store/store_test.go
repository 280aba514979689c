package store_test

import (
	"testing"

	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/runtime/durable/store"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// open opens a store on disk, and closes it at the end of the test.
func open(t testing.TB, dir string, o store.Options) *store.Disk {
	t.Helper()
	d, err := store.Open(dir, o)
	must(t, err)
	t.Cleanup(func() { _ = d.Close() }) // it may be closed already
	return d
}

// each runs a test with each kind of store.
func each(t *testing.T, f func(*testing.T, store.Store)) {
	t.Run("memory", func(t *testing.T) { f(t, store.NewMemory()) })
	t.Run("disk", func(t *testing.T) { f(t, open(t, memdir.Quick(t), store.Options{})) })
}

func put(t testing.TB, s store.Store, key, value string) {
	t.Helper()
	must(t, s.Update(func(tx store.Tx) error { tx.Put(1, []byte(key), []byte(value)); return nil }))
}

func get(t testing.TB, s store.Store, key string) (value string) {
	t.Helper()
	must(t, s.View(func(tx store.Tx) error { value = string(tx.Get(1, []byte(key))); return nil }))
	return value
}

// dump returns all records.
func dump(t testing.TB, s store.Store) map[string]string {
	t.Helper()
	records := map[string]string{}
	must(t, s.View(func(tx store.Tx) error {
		for r := range store.Records(tx) {
			records[string(rune(r.Table))+string(r.Key)] = string(r.Value)
		}
		return nil
	}))
	return records
}
