package adder

import (
	"os"
	"testing"
)

func TestAdd(t *testing.T) {
	if got := Add(1, 2); got != 3 {
		t.Errorf("got %d, want 3", got)
	}
}

func TestCount(t *testing.T) {
	if got := Count(3); got != 3 {
		t.Errorf("got %d, want 3", got)
	}
}

// TestSeeds finds a mistake in the seventh seed.
func TestSeeds(t *testing.T) {
	if os.Getenv("TOPOGEN_SEEDS") == "7" && Add(7, 7) != 14 {
		t.Error("seed 7")
	}
}
