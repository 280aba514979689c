package cli

import (
	"encoding/base64"
	"testing"
	"unicode/utf8"

	"github.com/topogen/topogen/internal/test/allocated"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// FuzzValues reads any values of promises in answers of a server.
func FuzzValues(f *testing.F) {
	f.Add([]byte(`{"func":"charge","args":[1]}`), false)
	f.Add([]byte(`{"message":"failed"}`), false)
	f.Add([]byte(`"text"`), false)
	f.Add([]byte("not base64"), true)
	const types = 16 << 10 // encoding/json describes each type when it is first used
	f.Fuzz(func(t *testing.T, data []byte, raw bool) {
		text := base64.StdEncoding.EncodeToString(data)
		if raw {
			text = string(data)
		}
		v := protocol.Value{Data: &text}
		p := &protocol.Promise{Param: v, Value: v, State: protocol.Rejected}
		allocated.Within(t, types+30*len(text), func() {
			if shown, ok := readData(v); ok && !utf8.Valid(shown) {
				t.Errorf("%q is shown as %q", text, shown)
			}
			_, _ = functionOf(p), errorOf(p)
		})
	})
}
