package fsm

// entryVersion is the first byte of an entry's data. Then come the proposer's time
// and the commands. Entries of older versions keep the meaning that they had:
//
//	1  an update that returns an error is undone
//	2  an update that returns an error has changed nothing
//	3  sessions belong to clients and nodes, and end by age; types have a description, and states checksums
const entryVersion = 3

// openersVersion is the version from which on sessions have openers.
const openersVersion = 3

// The kinds of commands. All but those that open a session have a sequence and a
// floor; the two with an update end with its length and its bytes.
const (
	commandOpen = iota + 1 // in entries of version 1 and 2
	commandUpdate
	commandAdd
	commandCommit
	commandRevert
	commandOpenClient
	commandOpenNode
	commandDescribe
	commandMark
	commandSum
)

func opensSession(kind byte) bool {
	return kind == commandOpen || kind == commandOpenClient || kind == commandOpenNode
}

// commandFollows, beside the kind, stands for the client and the floor of the
// command before, and the sequence after that one's: so are most.
const commandFollows = 0x80

type command struct {
	kind     byte
	client   uint64 // of one that opens a session: the nonce; of a sum: the node
	name     []byte // of the client that opens one; or a description, or a sum
	node     uint64 // that opens one, or whose description it is
	sequence uint64
	floor    uint64
	update   []byte
}

// entry reads what an entry begins with.
func (r *reader) entry() (version byte, now int64) {
	version = r.byte()
	if r.err == nil && (version == 0 || version > entryVersion) {
		r.fail("version %d of an entry; this program knows 1 to %d", version, entryVersion)
	}
	return version, r.int()
}

// next reads a command, where c is the one before; false at the end, and where r.err
// says why.
func (r *reader) next(c *command) bool {
	if len(r.b) == 0 {
		return false
	}
	c.kind, c.update = r.byte(), nil
	switch {
	case c.kind == commandDescribe:
		c.client, c.sequence, c.floor = r.uint(), 0, 0
		c.node = r.uint()
		if c.name = r.bytes(); len(c.name) > descriptionMax+limitsMax {
			r.fail("a description of %d bytes", len(c.name))
		}
	case c.kind == commandMark:
		c.client, c.sequence, c.floor = 0, 0, 0
	case c.kind == commandSum:
		c.client, c.sequence, c.floor = r.uint(), r.uint(), 0
		c.name = r.take(sumBytes)
	case c.kind&commandFollows != 0 && !opensSession(c.kind&^commandFollows) && c.kind&^commandFollows < commandDescribe:
		c.kind &^= commandFollows
		c.sequence++
	case opensSession(c.kind):
		r.open(c)
	default:
		c.client, c.sequence = r.uint(), r.uint()
		c.floor = c.sequence - uint64(r.int())
	}
	switch c.kind {
	case commandUpdate, commandAdd:
		c.update = r.bytes()
	case commandOpen, commandOpenClient, commandOpenNode, commandDescribe, commandMark, commandSum, commandCommit, commandRevert:
	default:
		r.fail("command of kind %d", c.kind)
	}
	return r.err == nil
}

// open reads the rest of a command that opens a session.
func (r *reader) open(c *command) {
	c.client, c.sequence, c.floor = r.uint(), 0, 0
	switch c.kind {
	case commandOpenClient:
		if c.name = r.bytes(); len(c.name) == 0 || len(c.name) > clientNameMax {
			r.fail("the name of a client has %d bytes", len(c.name))
		}
	case commandOpenNode:
		if c.node = r.uint(); c.node == 0 {
			r.fail("a session of node 0")
		}
	}
}
