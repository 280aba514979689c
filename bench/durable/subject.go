package durable

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/topogen/topogen/runtime/durable/client"
	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/server"
	"github.com/topogen/topogen/runtime/durable/store"
)

// A Subject is a way to reach the promises.
type Subject struct {
	Name   string
	HTTP   bool // whether clients use the network
	Client bool // whether they use package client
}

// Subjects are the ways that are compared.
func Subjects() []Subject {
	return []Subject{{"http", true, false}, {"http client", true, true}, {"process", false, false}}
}

// A System is a store with its engine, and a server if the subject has one.
type System struct {
	protocol.Backend // as its clients use it
	engine           *engine.Engine
	server           *server.Server
	client           *client.Client
	sender           *sender
}

// sending is a client whose operations a sender sends.
type sending struct {
	*client.Client
	sender *sender
}

func (s sending) Do(ctx context.Context, op protocol.Operation) (protocol.Result, error) {
	return s.sender.Do(ctx, op)
}

// Open opens a system in an empty folder.
func (s Subject) Open(dir string) (*System, error) {
	disk, err := store.Open(filepath.Join(dir, "store"), store.Options{})
	if err != nil {
		return nil, err
	}
	quiet := slog.New(slog.DiscardHandler)
	e, err := engine.Open(engine.Config{Store: disk, Logger: quiet})
	if err != nil {
		return nil, errors.Join(err, disk.Close())
	}
	system := &System{Backend: e, engine: e}
	if !s.HTTP {
		return system, nil
	}
	if system.server, err = server.Listen(server.Config{Backend: e, Listen: "127.0.0.1:0", Logger: quiet}); err != nil {
		return nil, errors.Join(err, system.Close())
	}
	if system.client, err = client.New(system.server.URL(), client.Options{}); err != nil {
		return nil, errors.Join(err, system.Close())
	}
	system.Backend = system.client
	if !s.Client {
		system.sender = newSender(system.server.URL())
		system.Backend = sending{system.client, system.sender}
	}
	return system, nil
}

// Close closes the system.
func (s *System) Close() error {
	var errs []error
	if s.sender != nil {
		errs = append(errs, s.sender.Close())
	}
	if s.client != nil {
		errs = append(errs, s.client.Close())
	}
	if s.server != nil {
		errs = append(errs, s.server.Close(context.Background()))
	}
	return errors.Join(append(errs, s.engine.Close(context.Background()))...)
}

// do carries out an operation that must succeed.
func do(ctx context.Context, b protocol.Backend, op protocol.Operation) (protocol.Result, error) {
	res, err := b.Do(ctx, op)
	if err == nil && res.Status != protocol.OK {
		err = fmt.Errorf("%s: status %d: %s", op.Kind(), res.Status, res.Error)
	}
	return res, err
}
