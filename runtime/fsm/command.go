package fsm

// entryVersion is the first byte of an entry's data. The proposer's time and the
// commands follow. Entries of older versions keep their meaning:
//
//	1  an update that returns an error is undone
//	2  an update that returns an error has changed nothing
//	3  sessions belong to clients and nodes, and expire; types have a description, and states checksums
const entryVersion = 3

// openersVersion is the first version in which sessions have openers.
const openersVersion = 3

// The kinds of commands. All of them have a sequence and a floor, except commands that
// open a session. The two with an update end with its length and its bytes.
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

// commandFollows is a bit of the kind. It means that the command has the client and the
// floor of the command before it, and the next sequence, as most commands do.
const commandFollows = 0x80

type command struct {
	kind     byte
	client   uint64 // the session; for opening a session: the nonce; for a sum: the node
	name     []byte // of the client that opens a session; or a description, or a checksum
	node     uint64 // that opens a session, or that the description belongs to
	sequence uint64
	floor    uint64
	update   []byte
}

// entry reads the beginning of an entry.
func (r *reader) entry() (version byte, now int64) {
	version = r.Byte()
	if r.Err == nil && (version == 0 || version > entryVersion) {
		r.Fail("an entry must have version 1 to %[2]d, got %[1]d", version, entryVersion)
	}
	return version, r.Int()
}

// next reads a command into c, which must hold the command before it. It returns false
// at the end and after an error, which is then in r.Err.
func (r *reader) next(c *command) bool {
	if len(r.B) == 0 {
		return false
	}
	c.kind, c.update = r.Byte(), nil
	switch {
	case c.kind == commandDescribe:
		c.client, c.sequence, c.floor = r.Uint(), 0, 0
		c.node = r.Uint()
		if c.name = r.Take(r.Uint()); len(c.name) > descriptionMax+limitsMax {
			r.Fail("a description of %d bytes", len(c.name))
		}
	case c.kind == commandMark:
		c.client, c.sequence, c.floor = 0, 0, 0
	case c.kind == commandSum:
		c.client, c.sequence, c.floor = r.Uint(), r.Uint(), 0
		c.name = r.Take(sumBytes)
	case c.kind&commandFollows != 0 && !opensSession(c.kind&^commandFollows) && c.kind&^commandFollows < commandDescribe:
		c.kind &^= commandFollows
		c.sequence++
	case opensSession(c.kind):
		r.open(c)
	default:
		c.client, c.sequence = r.Uint(), r.Uint()
		c.floor = c.sequence - uint64(r.Int())
	}
	switch c.kind {
	case commandUpdate, commandAdd:
		c.update = r.Take(r.Uint())
	case commandOpen, commandOpenClient, commandOpenNode, commandDescribe, commandMark, commandSum, commandCommit, commandRevert:
	default:
		r.Fail("command of kind %d", c.kind)
	}
	return r.Err == nil
}

// open reads the rest of a command that opens a session.
func (r *reader) open(c *command) {
	c.client, c.sequence, c.floor = r.Uint(), 0, 0
	switch c.kind {
	case commandOpenClient:
		if c.name = r.Take(r.Uint()); len(c.name) == 0 || len(c.name) > clientNameMax {
			r.Fail("the name of a client must have 1 to 64 bytes, got %d", len(c.name))
		}
	case commandOpenNode:
		if c.node = r.Uint(); c.node == 0 {
			r.Fail("the number of a node must not be 0")
		}
	}
}
