package grpc

import (
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ErrInsecure means that a transport without TLS refused an address of another host.
var ErrInsecure = errors.New("no TLS")

// Normal reasons for the end of a stream.
var (
	errClosed   = errors.New("the transport is closed")
	errExpired  = errors.New("a certificate has expired")
	errReplaced = errors.New("the peer has sent data on a newer stream")
)

// errCallExpired is the status of calls that end with a certificate.
var errCallExpired = status.Error(codes.Unavailable, errExpired.Error())
