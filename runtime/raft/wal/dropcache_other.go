//go:build !(linux && (amd64 || arm64))

package wal

import "os"

// dropCache does nothing: the package knows no call for this system.
func dropCache(*os.File) {}
