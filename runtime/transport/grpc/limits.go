package grpc

import "time"

// Limits of the protocol. Both ends rely on them, so they change only with protocol.
const (
	protocol            = 1                             // the version of transport.proto
	frameMessagesMax    = 512                           // this many messages take less time than a round trip on one host
	frameBytes          = 256 << 10                     // no message is added to a frame of this size, for the same reason
	frameBytesMax       = 1<<20 + 64<<10                // an update of 1 MiB fits, with the fields around it
	frameOverhead       = 64                            // overhead of one message or chunk, at most
	aloneBytes          = 64 << 10                      // a message of this size has its own frame, which saves a copy
	chunkBytes          = 256 << 10                     // an urgent message waits for one chunk or one frame: 2 and 9 ms at 1 Gbit/s
	wholeBytesMax       = frameBytesMax - frameOverhead // the largest payload that is not split
	helloBytesMax       = 4 << 10                       // four names, an address and some numbers
	headerBytesMax      = 4*helloBytesMax + 512         // gRPC's own headers, and a hello in base64 with room for a status
	streamsMax          = 64                            // of one connection: a peer needs two, operators some more
	dialingMax          = 8                             // attempts to connect to peers at the same time, see turns
	peerStreamsMax      = 4                             // of one peer: the current one, and its successor
	connectionsMax      = 1024                          // of nodes, operators, clients and strangers, see connections
	strangersKept       = connectionsMax / 4            // of connectionsMax: a node needs one for its handshake
	ownerConnectionsMax = 320                           // of one certificate: 256 clients, see package cluster, and those that are told that there is no room
	guestStreamsMax     = 4                             // of a connection of a client or an operator, which need two
	guestMessageMax     = 320 << 10                     // from a client or an operator: a chunk of 256 KiB of a call, with room for its form
	guestWindow         = 256 << 10                     // what a client or an operator may send unread, on each stream
	aheadMax            = 128 << 10                     // what is read from an end while it takes nothing: more than gRPC writes at once, so that two ends do not wait for each other
	unconfiguredMax     = 64                            // connected nodes that are not in the configuration: they are about to join
	metadataNameBytes   = 255                           // of a name in a hello
)

// Defaults of the configuration.
const (
	messageBytesMax = 512 << 20 // a snapshot
	pollInterval    = 10 * time.Second
)

// Times.
const (
	handshakeTimeout  = 5 * time.Second            // from the dial to the listener's hello: more than four packet losses
	frameTimeout      = 10 * time.Second           // a peer that accepts no frame for this long is considered gone
	finishTimeout     = 5 * time.Second            // after its successor is open, a stream has this time to deliver its frames
	clientPing        = 10 * time.Second           // gRPC's minimum; a lost connection is also detected by sending
	serverPing        = 3 * time.Second            // a node that restarts after a power failure waits this long, and
	pingTimeout       = 3 * time.Second            // this long, until its previous connection is known to be lost
	idleTimeout       = 5 * time.Minute            // a connection without streams is closed
	backoffMin        = 50 * time.Millisecond      // a restarting node is dialled soon after
	backoffMax        = 1 * time.Second            // an election timeout: a returning node is reached within it
	missingMin        = 1 * time.Second            // a missing connection is a warning after this time; a peer that ends on purpose says so earlier
	steadyMin         = 1 * time.Second            // after this time a stream is independent of earlier failures
	renewMin          = 100 * time.Millisecond     // between attempts to renew a stream
	callTimeMax       = time.Minute                // of a call of a service: an answer of 256 MiB at 35 Mbit/s
	requestTimeMax    = 10 * time.Second           // a caller that sends no request for this long is considered gone
	answerTimeMax     = 30 * time.Second           // a caller that takes no message of the answer for this long, too; 1 MiB at 280 kbit/s
	expiredGrace      = 100 * time.Millisecond     // the reason reaches a caller before its connection ends
	expiresMax        = 100 * 365 * 24 * time.Hour // of a certificate: some are valid until the year 9999, and a time.Duration has 292 years
	tcpKeepAlive      = 5 * time.Second            // of idle connections
	windowBytes       = 4 << 20                    // what a peer may send unread: the flow control of a stream
	unsentBytes       = 128 << 10                  // unsent data of a connection in the system: an urgent message waits for it, too
	transferBuffer    = 64 << 10                   // of reads and writes of a connection: a system call for each
	groupQueuesMax    = 1024                       // idle groups that are remembered: far more than a node has
	reassemblyGrowing = 4 << 20                    // initial buffer for a message in chunks
)
