package cli

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/store"
)

// TestProgress checks a store for eleven seconds.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := store.NewMemory()
		err := memory.Update(func(tx store.Tx) error {
			for _, key := range []string{"a", "b", "c"} {
				tx.Put(core.Promises, []byte(key), []byte("v"))
			}
			return tx.Err()
		})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		err = memory.View(func(tx store.Tx) error {
			kv := &countingKV{KV: tx}
			stop := kv.report(3, &out)
			for range kv.Ascend(core.Promises, nil) {
				time.Sleep(3 * time.Second)
			}
			time.Sleep(2 * time.Second)
			stop()
			time.Sleep(time.Minute)
			return nil
		})
		const want = "topoctl: read 2 records; the store has 3\ntopoctl: read 3 records; the store has 3\n"
		if err != nil || out.String() != want {
			t.Errorf("%v, got\n%s\nwant\n%s", err, out.String(), want)
		}
	})
}
