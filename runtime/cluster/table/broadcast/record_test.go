package broadcast

import (
	"bytes"
	"testing"

	"github.com/topogen/topogen/internal/test/allocated"
)

// FuzzPlain reads any bytes as a file of plain records, and writes them again.
func FuzzPlain(f *testing.F) {
	f.Add((&Record{1, 2, 3, 4, 5, 6}).Append(nil))
	f.Add(make([]byte, 2*recordSize+1))
	f.Fuzz(func(t *testing.T, b []byte) {
		allocated.Within(t, 10*len(b), func() {
			list, torn, err := ReadPlain(b)
			if err != nil {
				t.Fatal(err)
			}
			var again []byte
			for _, r := range list {
				again = r.Append(again)
			}
			if torn != len(b)-len(again) || !bytes.HasPrefix(b, again) {
				t.Errorf("%d records and %d bytes of %d", len(list), torn, len(b))
			}
		})
	})
}
