package certs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/topogen/topogen/runtime/internal/regular"
)

// fileBytesMax is larger than any certificate or key, and than all authorities of a
// system together.
const fileBytesMax = 1 << 20

// ReadFile reads a file of certificates or of a key: a regular file of at most 1 MiB.
// It returns an error at once for other kinds of files, such as a named pipe.
func ReadFile(name string) ([]byte, error) {
	f, _, err := regular.Open(name)
	if e, ok := errors.AsType[*fs.PathError](err); ok && errors.Is(err, regular.ErrNotRegular) {
		return nil, fmt.Errorf("cannot read %s: %w", name, e.Err)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, fileBytesMax+1))
	if err == nil && len(b) > fileBytesMax {
		err = fmt.Errorf("%s has more than %d bytes: it is not a file of certificates or of a key", name, fileBytesMax)
	}
	return b, err
}
