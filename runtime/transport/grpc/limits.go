package grpc

import "time"

// Limits of what goes over the wire. Both ends rely on them: they change with
// protocol alone.
const (
	protocol          = 1                             // the version of transport.proto
	frameMessagesMax  = 512                           // so many take less long than a round trip in one machine
	frameBytes        = 256 << 10                     // no message is added to a frame of that size, for the same reason
	frameBytesMax     = 1<<20 + 64<<10                // an update of 1 MiB goes whole, with what its sender puts around it
	frameOverhead     = 64                            // what frames one message or chunk, at most
	aloneBytes        = 64 << 10                      // a message of that size goes in a frame of its own, which saves a copy
	chunkBytes        = 256 << 10                     // an urgent message waits for one, or for a frame: 2 and 9 ms at 1 Gbit/s
	wholeBytesMax     = frameBytesMax - frameOverhead // the largest payload that is not cut
	helloBytesMax     = 4 << 10                       // four names, an address and some numbers
	headerBytesMax    = 4*helloBytesMax + 512         // gRPC's own headers, and a hello in base64 with room to say no
	streamsMax        = 64                            // of one connection: a peer needs two, operators some more
	peerStreamsMax    = 4                             // of one peer: one, and its successor while that is made
	connectionsMax    = 1024                          // those of peers and operators, and strangers: the oldest of these end for new ones
	unconfiguredMax   = 64                            // nodes that are connected and not in the configuration: they are about to join
	metadataNameBytes = 255                           // of a name in a hello
)

// Defaults of the configuration.
const (
	messageBytesMax = 512 << 20 // a snapshot
	pollInterval    = 10 * time.Second
)

// Times.
const (
	handshakeTimeout  = 5 * time.Second        // from the dial to the listener's hello: more than four losses of a packet
	frameTimeout      = 10 * time.Second       // a peer that takes no frame for so long is not there
	finishTimeout     = 5 * time.Second        // a stream whose successor stands is given so long to arrive
	clientPing        = 10 * time.Second       // gRPC's least; a lost connection is found by what is sent, too
	serverPing        = 3 * time.Second        // a node that restarts after a power failure waits so long, and
	pingTimeout       = 3 * time.Second        // so long, until its former self is known to be gone
	idleTimeout       = 5 * time.Minute        // a connection without streams ends
	backoffMin        = 50 * time.Millisecond  // a node that restarts is dialled soon after
	backoffMax        = 1 * time.Second        // an election timeout: who comes back is found within
	steadyMin         = 1 * time.Second        // a stream that stood so long has nothing to do with failures before
	renewMin          = 100 * time.Millisecond // between attempts to renew a stream
	logInterval       = time.Minute            // the same is logged that often
	logKeysMax        = 256                    // different things that are remembered as logged
	tcpKeepAlive      = 5 * time.Second        // of idle connections
	windowBytes       = 4 << 20                // what a peer may send unread: the flow control of a stream
	connWindowBytes   = 2 * windowBytes        // of a connection: a stream and its successor
	unsentBytes       = 128 << 10              // that the system holds of a connection: an urgent message waits for them, too
	transferBuffer    = 64 << 10               // of reads and writes of a connection: a system call for each
	groupQueuesMax    = 1024                   // groups that are remembered with nothing waiting: far more than a node has
	reassemblyGrowing = 4 << 20                // what the first chunk of a message makes room for
)
