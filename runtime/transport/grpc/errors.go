package grpc

import "errors"

// ErrInsecure is why a transport without TLS does not use an address that is not
// this machine's own.
var ErrInsecure = errors.New("no TLS")

// What ends a stream, and is no fault of anybody.
var (
	errClosed   = errors.New("the transport is closed")
	errExpired  = errors.New("a certificate has expired")
	errReplaced = errors.New("the peer has sent along another stream since")
)
