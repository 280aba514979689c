package processtests_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/topogen/topogen/generated_test/nameclashprocess"
)

// TestNameclashProcess sends messages along all edges and checks their contents.
func TestNameclashProcess(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	info, outside, err := nameclashprocess.Run(ctx)
	if err != nil {
		t.Error(err)
	}
	if !slices.Equal(info, []string{"right", "nested"}) {
		t.Error(info)
	}
	if outside != 3 {
		t.Error(outside)
	}
}
