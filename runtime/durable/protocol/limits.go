package protocol

// Limits of requests. A request beyond one of them is refused with status 400.
const (
	// MaxBody is the length of a request in bytes, unless a server is set to another
	// length. A parameter of 3 MiB still fits when it is written as base64.
	MaxBody = 4 << 20
	// MaxDepth is how deep objects and arrays may be nested. The protocol needs 6 levels:
	// a request, its data, an action, the data of the action, a value, its headers.
	MaxDepth = 32
	// MaxID is the length in bytes of an id, an address, the pid of a process and the name
	// of a group. They are keys of the store, whose pages have 4,096 bytes.
	MaxID = 2048
	// MaxTags is how many tags a promise has, and how many headers a value has. Each tag is
	// an entry of an index.
	MaxTags = 64
	// MaxTagKey is the length in bytes of the key of a tag or header.
	MaxTagKey = 256
	// MaxTagValue is the length in bytes of the value of a tag or header.
	MaxTagValue = 4096
	// MaxActions is how many promises a task.suspend may wait for and how many tasks a
	// task.heartbeat may name. All of them are part of one transaction.
	MaxActions = 10_000
	// MaxSearch is how many records a search may ask for.
	MaxSearch = 1000
	// MaxCursor is the length in bytes of the cursor of a search: an id in base64 fits.
	MaxCursor = 4096
	// MaxCron is the length in bytes of a cron expression.
	MaxCron = 256
	// MaxCorrID is the length in bytes of the corrId of a request. An SDK sends a UUID.
	MaxCorrID = 256
	// MaxKind is the length in bytes of the kind of a request.
	MaxKind = 64
	// MaxToken is the length in bytes of the token in the head of a request.
	MaxToken = 8192
	// MaxTime is the largest time and the longest duration in milliseconds. The sum of two
	// of them is an int64. It is larger than the largest integer that every client can
	// represent exactly, because JavaScript programs write Date.now() +
	// Number.MAX_SAFE_INTEGER when they mean never.
	MaxTime = 1<<62 - 1
	// MaxVersion is the largest version of a task: the largest integer that a double
	// represents exactly, and with it every client.
	MaxVersion = 1<<53 - 1
)
