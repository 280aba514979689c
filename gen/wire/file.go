package wire

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/topogen/topogen/gen/internal/bounded"
)

// numbersBytesMax bounds the file of field numbers, which has a line for each field.
const numbersBytesMax = 4 << 20

// FileName is the base name of the file of field numbers for a topology file:
// topology.wire.yml.
func FileName(topology string) string {
	base := filepath.Base(topology)
	return strings.TrimSuffix(strings.TrimSuffix(base, ".yml"), ".yaml") + ".wire.yml"
}

// ReadFile reads the file of field numbers. It returns nil if there is none yet.
func ReadFile(path string) ([]byte, *Problem) {
	text, why := bounded.ReadFile(path, numbersBytesMax)
	switch {
	case why == nil, errors.Is(why, fs.ErrNotExist):
		return text, nil
	case errors.Is(why, fs.ErrInvalid): // also a symbolic link, which a build would replace
		return nil, &Problem{Message: "it is not a regular file", Suggestion: "move it away: topogen keeps field numbers in a file of this name"}
	}
	if e, ok := errors.AsType[*fs.PathError](why); ok {
		why = e.Err // the finding names the file
	}
	return nil, &Problem{Message: "it cannot be read: " + why.Error(), Suggestion: "make it readable"}
}
