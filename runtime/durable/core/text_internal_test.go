package core

import (
	"testing"

	"github.com/topogen/topogen/internal/test/allocated"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// FuzzText reads any cron expressions and cursors of clients, and any keys and values of the store.
func FuzzText(f *testing.F) {
	f.Add("*/5 0-23/2 * JAN,FEB ?")
	f.Add("cGFi")
	f.Add("CRON_TZ=Asia/Tokyo 0 6 * * ?")
	f.Fuzz(func(t *testing.T, text string) {
		allocated.Within(t, 20*min(len(text), protocol.MaxCron)+4*len(text), func() {
			_, _ = parseCron(text)
			_, _ = openPage(1, text, 'p')
			_, _, _ = splitTime([]byte(text))
		})
		allocated.Within(t, 4*len(text), func() {
			defer func() {
				if c, ok := recover().(*CorruptError); !ok || c.Error() == "" {
					t.Errorf("%q has a checksum", text)
				}
			}()
			unseal(Promises, []byte("key"), []byte(text))
		})
	})
}
