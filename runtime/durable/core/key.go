package core

import (
	"encoding/binary"
	"strings"
)

// Keys are built from ids, addresses, tags and times. Texts hold no byte 0, so 0 ends them
// inside a key. Times are 8 bytes, the highest first, so that the order of the
// keys is the order of the times.
const end = 0

func appendTime(b []byte, ms int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(ms)) }

// pairKey is the key of an entry that joins two strings, such as a callback.
func pairKey(b []byte, x, y string) []byte { return append(append(append(b, x...), end), y...) }

// timeKey is the key of an entry of an index by time.
func timeKey(b []byte, ms int64, id string) []byte { return append(appendTime(b, ms), id...) }

// splitTime returns the parts of a timeKey.
func splitTime(key []byte) (ms int64, rest []byte, ok bool) {
	if len(key) < 8 {
		return 0, nil, false
	}
	ms = int64(binary.BigEndian.Uint64(key))
	return ms, key[8:], ms >= 0
}

// tagHashed is the length from which the value of a tag is shortened in the index. The
// index is only searched for equal values, and each hit is compared with the promise, so
// two values with the same short form do no harm.
const tagHashed = 96

// tagPrefix is the part of a key of PromiseTags that all promises with a tag share.
func tagPrefix(b []byte, key, value string) []byte {
	b = append(append(b, key...), end)
	if len(value) > tagHashed {
		sum := sumString(value)
		b = binary.BigEndian.AppendUint64(append(b, value[:tagHashed]...), sum)
	} else {
		b = append(b, value...)
	}
	return append(b, end)
}

// extends reports whether id is parent, or is below it in a tree of ids: "root:1.2" is
// below "root:1" and "root".
func extends(id, parent string) bool {
	rest, ok := strings.CutPrefix(id, parent)
	return ok && (rest == "" || rest[0] == ':' || rest[0] == '.')
}
