package member

import "testing"

// BenchmarkHeard is the cost of a sign of life for each message of the data path.
func BenchmarkHeard(b *testing.B) {
	var s signs
	for b.Loop() {
		s.set("n2")
	}
}
