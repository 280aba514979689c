package wire

import (
	"errors"
	"fmt"
	"io"
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
	text, why := readFile(path)
	switch {
	case why == nil, errors.Is(why, fs.ErrNotExist):
		return text, nil
	case errors.Is(why, errNoFile):
		return nil, &Problem{Message: why.Error(), Suggestion: "move it away: topogen keeps the numbers of fields in a file of this name"}
	}
	if e, ok := errors.AsType[*fs.PathError](why); ok {
		why = e.Err // the finding names the file
	}
	return nil, &Problem{Message: "it cannot be read: " + why.Error(), Suggestion: "make it readable"}
}

var errNoFile = errors.New("it is no regular file")

func readFile(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // a link, too, which a build would replace; a pipe would wait for ever
		return nil, errNoFile
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, numbersBytesMax+1))
	if err == nil && len(text) > numbersBytesMax {
		err = fmt.Errorf("it has more than %d bytes", numbersBytesMax)
	}
	return text, err
}
