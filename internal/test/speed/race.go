//go:build race

package speed

const raceDetector = true
