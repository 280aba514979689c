//go:build !(linux && (amd64 || arm64))

package pagecache

import "os"

// Drop does nothing and reports false: the package knows no call for this system.
func Drop(*os.File) bool { return false }

// TryDrop does nothing.
func TryDrop(*os.File) {}
