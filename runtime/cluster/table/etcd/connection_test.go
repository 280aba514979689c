package etcd

import (
	"context"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestTLSFailureIsNamed opens a table at a server whose certificate has an unknown
// authority. The error of Sync must name this, and not only that its context has ended.
func TestTLSFailureIsNamed(t *testing.T) {
	const want = "certificate signed by unknown authority"
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	o, err := Open(Config{Endpoints: []string{s.URL}, Prefix: "/p", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	for end := time.Now().Add(time.Minute); ; { // until the connection has failed
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		err := o.Sync(ctx)
		cancel()
		if err != nil && strings.Contains(err.Error(), want) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("Sync: %v", err)
		}
	}
	if got := o.Waiting(); !strings.Contains(got, want) || !strings.Contains(got, s.URL) {
		t.Errorf("it waits for %q", got)
	}
}
