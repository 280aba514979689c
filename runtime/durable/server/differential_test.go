package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
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

// remote is a server whose requests say what time it is.
type remote struct {
	config engine.Config
	dir    string // of the store, "" for one in memory
	engine *engine.Engine
	server *server.Server
	client *http.Client
}

// refused is a network without receivers: messages that are pushed stay in the outbox.
type refused struct{}

func (refused) RoundTrip(*http.Request) (*http.Response, error) { return nil, errors.New("refused") }

func (r *remote) start() (err error) {
	r.config.Store = store.NewMemory()
	if r.dir != "" {
		if r.config.Store, err = store.Open(r.dir, store.Options{}); err != nil {
			return err
		}
	}
	if r.engine, err = engine.Open(r.config); err != nil {
		return err
	}
	r.server, err = server.Listen(server.Config{Backend: r.engine, Listen: "127.0.0.1:0", Debug: true, Logger: r.config.Logger})
	if err != nil {
		return err
	}
	_, err = r.engine.Do(context.Background(), protocol.DebugStart{})
	return err
}

func (r *remote) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return errors.Join(r.server.Close(ctx), r.engine.Close(ctx))
}

// Restart closes the server and its store, and opens them again.
func (r *remote) Restart() error {
	if r.dir == "" {
		return nil
	}
	return errors.Join(r.stop(), r.start())
}

// Send sends a request. The status of HTTP must be the one of the response.
func (r *remote) Send(request []byte) ([]byte, error) {
	response, err := r.client.Post(r.server.URL(), "application/json", bytes.NewReader(request))
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	var envelope struct{ Head struct{ Status int } }
	if err := json.Unmarshal(body, &envelope); err != nil || envelope.Head.Status != response.StatusCode {
		return nil, fmt.Errorf("HTTP status %d with %s: %w", response.StatusCode, body, err)
	}
	return body, nil
}

// TestDifferential sends random sequences of requests to a server over HTTP, and compares
// its responses and its state with an oracle after each request. One server in ten is
// restarted now and then.
func TestDifferential(t *testing.T) {
	first, end := speed.Seeds(t, 3, 10, 2000)
	for seed := first; seed < end; seed++ {
		r := &remote{client: &http.Client{Transport: new(http.Transport)}}
		if seed%10 == 1 {
			r.dir = memdir.Quick(t)
		}
		err := oracle.Check(seed, func(c oracle.Config) (oracle.Remote, error) {
			r.config = engine.Config{
				Core:  core.Config{RetryTimeout: c.RetryTimeout, UnblocksMax: c.UnblocksMax, MissedMax: c.MissedMax, UnblockAge: oracle.NoRetry, Strict: c.Strict},
				Debug: true, Push: refused{}, Logger: slog.New(slog.DiscardHandler),
			}
			return r, r.start()
		})
		if err := errors.Join(err, r.stop()); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, speed.Repeat(t, seed))
		}
		r.client.CloseIdleConnections()
	}
}
