package store

import (
	"io"
	"sync"
)

// Limits of reading ahead. A file beyond readAheadMax may not fit into the memory of the
// system, and would be read twice.
const (
	readAheadBytes = 256 << 10 // more makes a disk no faster, and takes time to clear
	readAheadMax   = 8 << 30
)

// readAhead reads a file from its beginning, in large blocks, until the result is called.
// A verifier reads the pages in the order of the tree. From a disk that takes many times
// as long as in the order of the file, so this fills the memory of the system first.
func readAhead(file io.ReaderAt, size int64) (stop func()) {
	var group sync.WaitGroup
	ended := make(chan struct{})
	group.Go(func() {
		block := make([]byte, readAheadBytes)
		for at := int64(0); at < min(size, readAheadMax); at += readAheadBytes {
			select {
			case <-ended:
				return
			default:
			}
			if _, err := file.ReadAt(block, at); err != nil { // the verifier reports it
				return
			}
		}
	})
	return func() {
		close(ended)
		group.Wait()
	}
}
