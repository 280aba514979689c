//go:build !linux

package grpc

import "syscall"

// limitUnsent does nothing: other systems have no such limit, or buffer less.
func limitUnsent(syscall.RawConn) error { return nil }
