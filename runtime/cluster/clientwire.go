package cluster

import (
	"fmt"

	"github.com/topogen/topogen/runtime/cluster/session"
	"github.com/topogen/topogen/runtime/internal/fields"
)

// The service for clients has the stream Connect, which carries the frames of sessions in
// both directions, and the method Places, which returns a snapshot of the address table.
// Both use messages of google.protobuf, so that no code is generated for them.
//
// A message of the stream is an envelope: the length of the name of a node, the name, and a
// frame of the session with this node. Without a name it is the node of the stream. Another
// node passes such frames on, so that a client reaches all nodes through any of them. An
// envelope without a frame says that the client is there.
//
// The request of Places is the plan, a line feed, and the revision that the client has. The
// answer is empty if the node has the same one.
const (
	clientService = "topogen.cluster.Clients"
	connectMethod = "/" + clientService + "/Connect"
	placesMethod  = "/" + clientService + "/Places"
	clientKey     = "topogen-client" // metadata: the name that the client has chosen
	clientPrefix  = "client:"        // of the names of clients among the peers; a node's name has no colon
)

const (
	clientNameMin = 16 // so that no other client guesses the name; NewClient chooses 26 random letters
	clientNameMax = 64
	nodeNameMax   = 255 // as in sessions
	envelopeMax   = 1 + nodeNameMax
	clientFrames  = 256 // frames that wait for the network or for the core; further ones wait, or are lost and sent again
)

// appendEnvelope appends a message of the stream. name has at most nodeNameMax bytes.
func appendEnvelope(b []byte, name string, frame []byte) []byte {
	b = append(b, byte(len(name)))
	b = append(b, name...)
	return append(b, frame...)
}

// cutEnvelope divides a message of the stream. The frame is a part of it.
func cutEnvelope(b []byte) (name string, frame []byte, ok bool) {
	if len(b) == 0 {
		return "", nil, false
	}
	n := 1 + int(b[0])
	if n > len(b) || len(b)-n > session.FrameBytesMax {
		return "", nil, false
	}
	return string(b[1:n]), b[n:], true
}

// passedOn is a frame that a node passes on to another one, for a client.
type passedOn struct {
	toClient bool
	client   string // its name among the peers
	owner    string // the certificate of the client; "" without TLS, and to a client
	frame    []byte
}

func (p *passedOn) append(b []byte) []byte {
	direction := byte(0)
	if p.toClient {
		direction = 1
	}
	b = append(b, direction)
	for _, text := range [...]string{p.client, p.owner} {
		b = fields.AppendText(b, text)
	}
	return append(b, p.frame...)
}

func (p *passedOn) read(b []byte) error {
	r := newReader(b)
	direction := r.Uint()
	p.toClient = direction == 1
	p.client, p.owner = string(r.Take(r.Uint())), string(r.Take(r.Uint()))
	p.frame = r.B
	if r.Err != nil || direction > 1 || !isClient(p.client) || len(p.client) > len(clientPrefix)+clientNameMax {
		return fmt.Errorf("%w: a frame of a client that was passed on", errMalformed)
	}
	return nil
}

// checkClientName returns an error if a name that a client has chosen is not valid.
func checkClientName(name string) error {
	if len(name) < clientNameMin || len(name) > clientNameMax {
		return fmt.Errorf("the name of a client must have %d to %d bytes, got %d", clientNameMin, clientNameMax, len(name))
	}
	for _, r := range name {
		if (r < 'A' || r > 'Z') && (r < '0' || r > '9') {
			return fmt.Errorf("the name of a client must consist of the letters A to Z and digits, got %.100q", name)
		}
	}
	return nil
}
