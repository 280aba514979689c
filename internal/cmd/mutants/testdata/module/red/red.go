// Package red has a test that fails.
package red

const answer = 41
