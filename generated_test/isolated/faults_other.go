//go:build !unix

package isolated

import "syscall"

// Processors with isolation: process need Unix, and so do these faults. The package
// compiles elsewhere so that go vet checks it.

func signalSelf(syscall.Signal) { panic("needs Unix") }

func writeTo(int, string) { panic("needs Unix") }

func closeFiles(int) { panic("needs Unix") }
