//go:build !linux

package engine_test

import "os"

func syncData(f *os.File) error { return f.Sync() }
