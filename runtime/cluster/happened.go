package cluster

import "github.com/topogen/topogen/runtime/piper/border"

// happened is what has happened since the last step.
type happened struct {
	frames     []frame
	frameBytes int
	forwards   []forward
	replies    []reply
	handled    []*inPair
	quiet      []int
	full       []int // groups that the pool reports as full, see fullCycles
	alive      []alive
	rooms      []roomFor
	members    bool     // nodes have joined or left
	gone       []string // nodes that have left and can be dropped
	stopping   bool     // the context of Run has ended
	ended      bool     // Run returns
	result     error
	flushed    chan struct{} // closed when the other nodes have received everything
	views      []chan<- coreView
	proposed   []proposed
	farewells  []string // nodes that know the end, and whose processes were killed at the end
}

// proposed is the result of a proposal.
type proposed struct {
	proposal
	applied bool // otherwise a guard did not hold
}

type frame struct {
	from  string
	data  []byte
	taken chan struct{} // of a client: the core receives from it, so that the client may send another frame; nil for nodes
}

type forward struct {
	outlet *border.Outlet
	chunk  border.Chunk
}

// alive is what the failure detector says about a node.
type alive struct {
	node  string
	alive bool
	left  bool // it has said that it ends

	noRoom string // why the node has no room for this client; "": it has, or it is not known

	passedOn bool // a client that is connected only to other nodes
}

// mailBytesMax bounds the frames that wait for the core. It is rarely behind, and nodes
// send 4 MiB at most before it has acknowledged something.
// Clients may use half of it.
const mailBytesMax = 256 << 20

// addFrame adds a frame. If too much waits for the core, the frame is lost, as on the
// network, and the session of its sender sends it again.
func (h *happened) addFrame(f frame) {
	most := mailBytesMax
	if isClient(f.from) {
		most /= 2
	}
	if h.frameBytes+len(f.data) > most {
		if f.taken != nil {
			<-f.taken
		}
		return
	}
	h.frameBytes += len(f.data)
	h.frames = append(h.frames, f)
}
