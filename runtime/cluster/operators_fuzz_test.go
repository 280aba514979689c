package cluster

import (
	"testing"

	"github.com/topogen/topogen/internal/test/allocated"
)

// FuzzOperators reads any requests of operators, and any answers of nodes.
func FuzzOperators(f *testing.F) {
	f.Add(`{"show":"table","processor":"orders","node":"n1"}`)
	f.Add(`{"node":"n1"}`)
	f.Add(`{"view":{"node":"n1"},"nodes":[{}],"processors":[{}],"edges":[{}],"moves":[{}],"containers":[{}]}`)
	const types = 64 << 10 // encoding/json describes each type when it is first used
	f.Fuzz(func(t *testing.T, text string) {
		allocated.Within(t, types+20*len(text), func() {
			var r Removal
			_, _ = parseCommand(text)
			_ = parseRequest(text, &r)
		})
		var r Report
		allocated.Within(t, types+500*len(text), func() { _ = r.add(text) }) // {} is a node, which has hundreds of bytes
	})
}
