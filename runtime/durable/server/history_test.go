package server_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/internal/test/oracle"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/server"
	"github.com/topogen/topogen/runtime/durable/store"
)

// TestHistories checks the histories of clients of an engine in the same process and of
// clients over HTTP: a server that carries out the requests one after the other, each
// between its call and its response, must give the same responses. Each client
// sends 12 requests about each of the trees.
func TestHistories(t *testing.T) {
	trees := speed.Pick(t, 1, 2, 2000)
	for _, over := range []string{"engine", "http"} {
		for _, disk := range []string{"memory", "disk"} {
			t.Run(over+"/"+disk, func(t *testing.T) {
				config := engine.Config{Core: core.Config{RetryTimeout: oracle.NoRetry}, Clock: oracle.NewClock()}
				if disk == "disk" {
					config.Store = openDisk(t)
				}
				e := openEngine(t, config)
				l := &oracle.Load{Clock: config.Clock.(oracle.Clock), Send: inProcess(e), Clients: speed.Pick(t, 5, 8, 8), Trees: trees, Each: 12, Abandon: 64}
				if over == "http" {
					l.Send = overHTTP(t, listen(t, server.Config{Backend: e}).URL())
				}
				history, err := l.Run(uint64(trees))
				if err != nil {
					t.Fatal(err)
				}
				outcomes, err := history.Check()
				t.Logf("%d requests: %v", len(history), outcomes)
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func openDisk(t *testing.T) store.Store {
	t.Helper()
	s, err := store.Open(memdir.Quick(t), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// inProcess returns a function that carries out requests on an engine.
func inProcess(e *engine.Engine) func(context.Context, []byte) ([]byte, oracle.Outcome, error) {
	return func(ctx context.Context, request []byte) ([]byte, oracle.Outcome, error) {
		r, err := protocol.DecodeRequest(request)
		if err != nil {
			return nil, oracle.NotCarried, err
		}
		result, err := e.Do(ctx, r.Op)
		switch {
		case errors.Is(err, engine.ErrUnknown):
			return nil, oracle.Unknown, err
		case err != nil:
			return nil, oracle.NotCarried, err
		}
		return protocol.AppendResponse(nil, &r, &result), oracle.Answered, nil
	}
}

// overHTTP returns a function that sends requests to a server.
func overHTTP(t *testing.T, url string) func(context.Context, []byte) ([]byte, oracle.Outcome, error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
	t.Cleanup(client.CloseIdleConnections)
	return func(ctx context.Context, request []byte) ([]byte, oracle.Outcome, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(request))
		if err != nil {
			return nil, oracle.NotCarried, err
		}
		response, err := client.Do(r)
		if err != nil {
			return nil, oracle.Unknown, err
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			return nil, oracle.Unknown, err
		}
		return text, oracle.Answered, nil
	}
}
