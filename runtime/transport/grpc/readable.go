package grpc

import (
	"strconv"
	"strings"
)

// Readable returns the text of an error of gRPC without the quotes that gRPC puts around
// the text of another error. A log would escape them a second time. For example,
//
//	connection error: desc = "transport: dial tcp 10.0.0.2:7101: connection refused"
//
// becomes "connection error: transport: dial tcp 10.0.0.2:7101: connection refused". Quotes
// that do not end the text stay.
func Readable(text string) string {
	const quoted = "desc = \""
	for range readableMax {
		before, _, found := strings.Cut(text, quoted)
		if !found {
			break
		}
		inner, err := strconv.Unquote(text[len(before)+len(quoted)-1:])
		if err != nil {
			break
		}
		text = before + inner
	}
	return text
}

// readableMax bounds the nesting of texts. gRPC itself nests two.
const readableMax = 8
