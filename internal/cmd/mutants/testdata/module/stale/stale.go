// Package stale has changed since its list was written.
package stale

var (
	once  = 1
	twice = 2
	again = 2
)

func print() {
	println("twice")
	println("twice")
}
