package cli

import (
	"bytes"
	"testing"

	"github.com/topogen/topogen/internal/test/reference"
)

func TestReference(t *testing.T) {
	reference.Check(t, "topoctl", func(args ...string) string {
		var out bytes.Buffer
		Run(t.Context(), args, Streams{Out: &out, Err: &out})
		return out.String()
	})
}
