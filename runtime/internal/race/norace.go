//go:build !race

// Package race says whether the race detector is on.
package race

// Enabled is true in builds with -race only.
const Enabled = false
