//go:build race

// Package race says whether the race detector is enabled.
package race

// Enabled is true only in builds with -race.
const Enabled = true
