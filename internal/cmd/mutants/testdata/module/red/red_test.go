package red

import (
	"os"
	"strconv"
	"testing"
	"time"
)

func TestAnswer(t *testing.T) {
	if answer != 42 {
		t.Error("the answer must be 42")
	}
}

// TestSeeds fails with many seeds.
func TestSeeds(t *testing.T) {
	if n, _ := strconv.Atoi(os.Getenv("TOPOGEN_SEEDS")); n >= 400 {
		t.Error("seed 400")
	}
}

func TestSlow(t *testing.T) { time.Sleep(delay) }
