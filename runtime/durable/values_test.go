package durable

import (
	"testing"

	"github.com/topogen/topogen/internal/test/allocated"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// FuzzValues reads any values of promises, which other clients have written.
func FuzzValues(f *testing.F) {
	f.Add([]byte(`{"func":"charge","args":[{"cents":1}],"version":1}`), false)
	f.Add([]byte(`{"__type":"error","name":"E","message":"failed"}`), false)
	f.Add([]byte(`[[],{}]`), false)
	f.Add([]byte("not base64"), true)
	const types = 16 << 10 // encoding/json describes each type when it is first used
	f.Fuzz(func(t *testing.T, data []byte, raw bool) {
		v := encoded(data)
		if raw {
			text := string(data)
			v.Data = &text
		}
		type argument struct{ Cents []int }
		allocated.Within(t, types+400*len(*v.Data), func() { // [{},{}] becomes maps
			_, _, _ = decodeCall(v)
			_ = equalArgument(v, argument{})
			_ = sameJSON(v, protocol.Value{Data: new("bnVsbA==")})
			var a argument
			_ = Decode(data, &a)
			_ = unmarshalStep(data, &a)
			_ = unmarshal(data, &a)
			if rejection(data) == nil {
				t.Errorf("%q is a rejection without an error", data)
			}
		})
	})
}
