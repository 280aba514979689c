// Package bounded reads files up to a limit.
package bounded

import (
	"fmt"
	"io"
	"io/fs"
	"os"
)

// ReadFile reads a file of at most most bytes. It returns fs.ErrInvalid unless the file is regular.
func ReadFile(path string, most int64) ([]byte, error) {
	if info, err := os.Lstat(path); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() { // reading a pipe could block
		return nil, fs.ErrInvalid
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, most+1)) // the size may have changed
	if int64(len(text)) > most {
		return nil, fmt.Errorf("it has more than %d bytes", most)
	}
	return text, err
}
