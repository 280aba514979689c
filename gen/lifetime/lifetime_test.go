package lifetime_test

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/topogen/topogen/gen/lifetime"
)

// TestHandlers: the types in testdata are named after what their handlers do. A
// comment "want" says what must be reported; all else must not be.
func TestHandlers(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), lifetime.Analyzer, "crawl")
}
