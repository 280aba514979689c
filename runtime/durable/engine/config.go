package engine

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/store"
)

// Config has the settings of an [Engine]. Only Store is required.
type Config struct {
	// Store keeps the promises. The engine closes it.
	Store store.Store
	// Core has the settings of the state machine.
	Core core.Config
	// Clock tells the time. nil: the clock of the computer.
	Clock Clock
	// Agreed says that the time of day of Clock is that of a majority of computers. Then it is
	// believed at the start, however old the last commit is.
	Agreed bool
	// Debug allows the operations debug.* and [WithTime]. Leases and retries then follow
	// the time of day too, so that a test can set it.
	Debug bool
	// Logger receives failures. nil: slog.Default.
	Logger *slog.Logger

	// CallsMax is the number of operations that may wait for a commit. Further ones are
	// refused with status 429. 0 means CallsMaxDefault.
	CallsMax int
	// CallBytesMax is the size of the waiting operations. 0 means CallBytesMaxDefault.
	CallBytesMax int
	// BatchMax is the number of operations in a transaction. 0 means BatchMaxDefault.
	BatchMax int
	// ConnectionsMax is the number of connections. 0 means ConnectionsMaxDefault.
	ConnectionsMax int
	// BufferMax is the number of messages that wait for a connection to take them. 0 means
	// BufferMaxDefault.
	BufferMax int

	// ServerURL is the address of this server for the head of messages that are pushed to
	// http addresses. "": the receiver must know it.
	ServerURL string
	// Push sends messages to http and https addresses. nil: a transport with the limits
	// below. Its requests end after PushTimeout.
	Push http.RoundTripper
}

// Defaults and limits.
const (
	// CallsMaxDefault is above the number of clients that a server has, each of which waits
	// for one answer at a time.
	CallsMaxDefault = 16_384
	// CallBytesMaxDefault lets 64 requests of the largest size wait.
	CallBytesMaxDefault = 64 * protocol.MaxBody
	// BatchMaxDefault bounds a transaction. With more operations the sync is a small part of
	// the time already.
	BatchMaxDefault = 1024
	// ConnectionsMaxDefault and BufferMaxDefault are the limits of the original server.
	ConnectionsMaxDefault = 1000
	BufferMaxDefault      = 100

	batchBytesMax = 16 << 20              // a transaction is in memory until its commit
	batchTimeMax  = 20 * time.Millisecond // of steps, so that a large batch does not delay its first caller
	tickInterval  = time.Second           // so that a jump of the clock is noticed
	ackDelayMax   = 50 * time.Millisecond // a commit that has other work takes the acknowledgements with it
	acksMax       = 1000                  // in a transaction
	heldMax       = 10_000                // execute messages that wait for a worker, for each group and process
	heldTotalMax  = 100_000               // a held message takes about 200 bytes
	resendMax     = 1000                  // execute messages of closed connections that are looked at between two transactions
	startMax      = heldTotalMax          // execute messages that are sent again at the start; retries send the others

	streamBytesMax  = 256 << 20 // of unblock messages that connections have; further ones wait in the store
	messageBytesMax = 8 << 20   // the same for one connection, which is a parameter and a value of the largest size

	refillAcksMax = 100_000 // delivered messages that the store still has, while its disk is full

	ownDelay = time.Second // between two attempts of the engine's own work while the disk is full, or after it panicked
)

// Limits of pushes. The first three are those of the original server.
const (
	PushesMax          = 256
	PushConnectTimeout = 10 * time.Second
	PushTimeout        = 180 * time.Second

	pushBodyTimeout  = time.Second // to read the body of an answer, so that its connection can be used again
	pushesForAddress = 32          // at a time, so that one slow receiver leaves slots for the others
	pushesForHost    = 64          // the same for a host on which many addresses are slow
	pushesWaiting    = 10_000      // further execute messages are dropped, and their retry sends them again
	pushBytesMax     = 64 << 20    // of unblock messages; further ones wait in the store
	pushTargetsMax   = 10_000      // addresses with messages or failures in memory
	pushDelayMin     = time.Second
	pushDelayMax     = time.Minute // between two attempts at an address that fails
	pushInterval     = time.Second // between two scans for stored messages to http addresses
	pushAnswerMax    = 64 << 10    // bytes of the header of an answer, and bytes of its body that are read, so that the connection can be used again
)

func (c Config) withDefaults() (Config, error) {
	if c.Store == nil {
		return c, errors.New("engine: Config.Store is missing")
	}
	for _, limit := range []struct {
		name  string
		value *int
		usual int
	}{
		{"CallsMax", &c.CallsMax, CallsMaxDefault},
		{"CallBytesMax", &c.CallBytesMax, CallBytesMaxDefault},
		{"BatchMax", &c.BatchMax, BatchMaxDefault},
		{"ConnectionsMax", &c.ConnectionsMax, ConnectionsMaxDefault},
		{"BufferMax", &c.BufferMax, BufferMaxDefault},
	} {
		if *limit.value < 0 {
			return c, fmt.Errorf("engine: Config.%s must be positive, got %d", limit.name, *limit.value)
		}
		if *limit.value == 0 {
			*limit.value = limit.usual
		}
	}
	if c.Clock == nil {
		c.Clock = NewClock()
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Push == nil {
		c.Push = newTransport()
	}
	return c, nil
}
