// Package adder adds numbers.
package adder

// Add returns a + b.
func Add(a, b int) int {
	if a > 1000 {
		return b + a
	}
	return a + b
}

// Count returns n, slowly.
func Count(n int) (k int) {
	for k < n {
		k++
	}
	return k
}

// Sign returns the sign of n.
func Sign(n int) (sign int) {
	switch {
	case n == 1<<62:
		panic("too large")
	case n > 1000:
		fallthrough
	case n > 0:
		sign = 1
	case n == 0:
		return 0
	default:
		sign = -1
	}
	return sign
}
