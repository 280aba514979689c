package wal_test

import (
	"os"
	"strconv"
)

// seeds is how many the environment variable TOPOGEN_SEEDS asks for; first is the
// one of TOPOGEN_SEED, which is run alone.
func seeds(n uint64) (first, end uint64) {
	if s, err := strconv.ParseUint(os.Getenv("TOPOGEN_SEED"), 10, 64); err == nil {
		return s, s + 1
	}
	if s, err := strconv.ParseUint(os.Getenv("TOPOGEN_SEEDS"), 10, 64); err == nil {
		n = s
	}
	return 0, n
}
