package etcd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/topogen/topogen/runtime/cluster/table"
)

// The keys below the prefix. Numbers in keys have 16 hexadecimal digits, so that the order
// of the keys is the order of the numbers.
//
//	PREFIX/last          number of the last entry
//	PREFIX/log/N         entry N
//	PREFIX/head          the newest snapshot: its last entry, and its parts
//	PREFIX/snap/N/PART   a part of the snapshot with the last entry N
//	PREFIX/lease/NAME    the holder of a lease
type keys struct{ prefix string }

func (k keys) last() string                   { return k.prefix + "/last" }
func (k keys) log() string                    { return k.prefix + "/log/" }
func (k keys) head() string                   { return k.prefix + "/head" }
func (k keys) snapshots() string              { return k.prefix + "/snap/" }
func (k keys) lease(name string) string       { return k.prefix + "/lease/" + name }
func (k keys) entry(n uint64) string          { return k.log() + digits(n) }
func (k keys) snapshot(n uint64) string       { return k.snapshots() + digits(n) + "/" }
func (k keys) part(n uint64, part int) string { return k.snapshot(n) + digits(uint64(part)) }
func digits(n uint64) string                  { return fmt.Sprintf("%016x", n) }

var errKey = errors.New("keys in etcd were changed or deleted, or belong to another program")

// entryNumber returns the number in the key of an entry.
func (k keys) entryNumber(key string) (uint64, error) {
	text, ok := strings.CutPrefix(key, k.log())
	n, err := strconv.ParseUint(text, 16, 64)
	if !ok || err != nil || digits(n) != text {
		return 0, fmt.Errorf("%w: %q", errKey, key)
	}
	return n, nil
}

// entry is an entry of the log.
type entry struct {
	nonce   uint64 // of the proposer
	time    int64  // Unix nanoseconds, by the proposer's clock
	command []byte
}

const entryVersion = 1

func (e *entry) encode() string {
	b := binary.LittleEndian.AppendUint64([]byte{entryVersion}, e.nonce)
	b = binary.LittleEndian.AppendUint64(b, uint64(e.time))
	return string(append(b, e.command...))
}

func readEntry(b []byte) (e entry, err error) {
	if len(b) < 17 || b[0] != entryVersion {
		return e, fmt.Errorf("%w: an entry of %d bytes", errKey, len(b))
	}
	return entry{binary.LittleEndian.Uint64(b[1:]), int64(binary.LittleEndian.Uint64(b[9:])), b[17:]}, nil
}

// head describes the newest snapshot.
type head struct {
	last  uint64 // number of its last entry
	parts int
}

const partsMax = table.SnapshotBytes/partBytes + 1

func (h head) encode() string { return fmt.Sprintf("%016x %d", h.last, h.parts) }

func readHead(b []byte) (h head, err error) {
	last, parts, ok := strings.Cut(string(b), " ")
	if h.last, err = strconv.ParseUint(last, 16, 64); err == nil {
		h.parts, err = strconv.Atoi(parts)
	}
	if err != nil || !ok || h.parts < 1 || h.parts > partsMax || h.encode() != string(b) {
		return h, fmt.Errorf("%w: the head %.40q", errKey, b)
	}
	return h, nil
}

func readLast(b []byte) (uint64, error) {
	n, err := strconv.ParseUint(string(b), 16, 64)
	if err != nil || digits(n) != string(b) || n == math.MaxUint64 {
		return 0, fmt.Errorf("%w: the number of the last entry %.40q", errKey, b)
	}
	return n, nil
}
