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
	f.Fuzz(func(t *testing.T, text string) {
		allocated.Within(t, 20*len(text), func() {
			var r Removal
			_, _ = parseCommand(text)
			_ = parseRequest(text, &r)
		})
		var r Report
		allocated.Within(t, 500*len(text), func() { _ = r.add(text) }) // {} is a node, which has hundreds of bytes
	})
}
