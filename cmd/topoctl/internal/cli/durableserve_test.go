package cli

import (
	"context"
	"io"
	"testing"

	"github.com/topogen/topogen/runtime/durable/store"
)

// TestServeClosesTheStore: a server that is told to stop closes its store, so that another one in
// this process can open it.
func TestServeClosesTheStore(t *testing.T) {
	dir := t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if code := Run(ctx, []string{"durable", "serve", "--store", dir, "--listen", "127.0.0.1:0"}, Streams{io.Discard, io.Discard}); code != exitSuccess {
		t.Fatalf("the server ends with %d", code)
	}
	s, err := store.Open(dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
