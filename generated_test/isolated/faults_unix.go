//go:build unix

package isolated

import (
	"os"
	"syscall"
)

// signalSelf sends a signal to this process.
func signalSelf(s syscall.Signal) { syscall.Kill(os.Getpid(), s) }

// writeTo writes text to a file descriptor of this process.
func writeTo(fd int, text string) { syscall.Write(fd, []byte(text)) }

// closeFiles closes the file descriptors below n.
func closeFiles(n int) {
	for fd := range n {
		syscall.Close(fd)
	}
}
