// Package canonical lacks all handlers: the ports have them as they are suggested.
package canonical

import "github.com/topogen/topogen/generated_test/testdata/canonical/other"

type (
	Item   = other.Item
	Answer = other.Answer
)
