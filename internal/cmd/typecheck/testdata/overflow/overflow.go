// Package overflow has a constant that overflows an int of 32 bits.
package overflow

import "math"

var Limit int = math.MaxUint32
