// Package start has tests that may not start.
package start

const ready = true
