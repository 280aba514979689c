// Package odd has messages with names that codecs use.
package odd

import "github.com/topogen/topogen/generated_test/wire/odd/internal/hidden"

type (
	b struct {
		M *m
		R []r
		K map[k]v
	}
	m     struct{ At at }
	r     [2]p
	p     struct{ I *i }
	i     []entry
	entry struct{ Depth *depth }
	depth struct{ Depth []depth }
	at    map[k]*v
	k     string
	v     struct {
		b      *b
		Err    struct{ Err err }
		Hidden hidden.Part
	}
	err int
)

func appendB() b  { return b{} }
func consumeB() b { return b{} }

var _, _ = appendB, consumeB
