// Package typesandhandlersmissing lacks all handlers: the ports have them as they are suggested.
package typesandhandlersmissing

import "github.com/topogen/topogen/generated_test/testdata/types_and_handlers_missing/other"

type (
	Item   = other.Item
	Answer = other.Answer
)
