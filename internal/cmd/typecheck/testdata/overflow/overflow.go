// Package overflow has a constant that an int of 32 bits does not hold.
package overflow

import "math"

var Limit int = math.MaxUint32
