package oracle

import (
	"os"
	"strconv"
)

// seeds returns the range of seeds to run. The environment variable TOPOGEN_SEEDS overrides
// their number n; TOPOGEN_SEED selects a single seed.
func seeds(n uint64) (first, end uint64) {
	if s, err := strconv.ParseUint(os.Getenv("TOPOGEN_SEED"), 10, 64); err == nil {
		return s, s + 1
	}
	if s, err := strconv.ParseUint(os.Getenv("TOPOGEN_SEEDS"), 10, 64); err == nil {
		n = s
	}
	return 0, n
}
