package wire

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// numbersBytesMax bounds the file of field numbers: a line for each field.
const numbersBytesMax = 4 << 20

// FileName is the base name of the file of field numbers that stands beside a
// topology file: topology.wire.yml.
func FileName(topology string) string {
	base := filepath.Base(topology)
	return strings.TrimSuffix(strings.TrimSuffix(base, ".yml"), ".yaml") + ".wire.yml"
}

// ReadFile reads the file of field numbers; nil: there is none yet.
func ReadFile(path string) ([]byte, *Problem) {
	info, why := os.Lstat(path)
	switch {
	case errors.Is(why, fs.ErrNotExist):
		return nil, nil
	case why == nil && !info.Mode().IsRegular(): // a link, too, which a build would replace; a pipe would wait for ever
		return nil, &Problem{Message: "it is no regular file", Suggestion: "move it away: topogen keeps the numbers of fields in a file of this name"}
	case why == nil && info.Size() > numbersBytesMax:
		why = fmt.Errorf("it has more than %d bytes", numbersBytesMax)
	}
	var text []byte
	if why == nil {
		text, why = os.ReadFile(path)
	}
	if why == nil {
		return text, nil
	}
	if e, ok := errors.AsType[*fs.PathError](why); ok {
		why = e.Err // the finding names the file
	}
	return nil, &Problem{Message: "it cannot be read: " + why.Error(), Suggestion: "make it readable"}
}
