package broadcast

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"

	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/internal/pagecache"
	"github.com/topogen/topogen/runtime/internal/regular"
)

// The log of a node is a file DIR/wal/domain_table.0.0.NODE.bin. The document has a file
// for each pool, named by the number of the pool. Here the pool is 0.0, because one file
// orders the changes of all processors.
//
// The file begins with a header. Frames follow: the length of the payload, its CRC-32C,
// and the payload, which is an entry or a snapshot. The first frame of a log that was
// shortened is a snapshot.
//
//	header    "tgaddr", version 1 as two bytes
//	frame     length u32, CRC-32C u32, payload
//	payload   kind u8, term u64, index u64, and
//	entry     time i64, nonce u64, number of records u32, records of 28 bytes each, command
//	snapshot  encoded state
const (
	header        = "tgaddr\x01\x00"
	frameHeader   = 8
	payloadHeader = 17
	kindEntry     = 1
	kindSnapshot  = 2

	recordsMax = 4096     // of an entry: they repeat its moves in the document's form
	logMax     = 16 << 20 // bytes of entries after which the log begins again with a snapshot
	frameMax   = table.SnapshotBytes + payloadHeader
	fileMax    = frameMax + 2*logMax
)

var errLog = errors.New("table/broadcast: the log is damaged")

// entry is a change in the log, and in the message that broadcasts it.
type entry struct {
	revision table.Revision
	time     int64
	nonce    uint64 // of the proposal
	records  []Record
	command  []byte
}

// storage is the durable log of a node.
type storage interface {
	// append writes an entry and syncs it.
	append(e *entry) error
	// install replaces the log by a snapshot.
	install(revision table.Revision, state []byte) error
	close() error
}

func appendFrame(b, payload []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(payload, castagnoli))
	return append(b, payload...)
}

func appendPosition(b []byte, kind byte, r table.Revision) []byte {
	b = binary.LittleEndian.AppendUint64(append(b, kind), r.Term)
	return binary.LittleEndian.AppendUint64(b, r.Index)
}

func (e *entry) append(b []byte) []byte {
	b = appendPosition(b, kindEntry, e.revision)
	b = binary.LittleEndian.AppendUint64(b, uint64(e.time))
	b = binary.LittleEndian.AppendUint64(b, e.nonce)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(e.records)))
	for i := range e.records {
		b = e.records[i].Append(b)
	}
	return append(b, e.command...)
}

const entryHeader = payloadHeader + 20

// size returns the number of bytes of an encoded entry.
func (e *entry) size() int { return entryHeader + len(e.records)*recordSize + len(e.command) }

func readEntry(b []byte) (*entry, error) {
	if len(b) < entryHeader || b[0] != kindEntry {
		return nil, fmt.Errorf("%w: an entry of %d bytes", errLog, len(b))
	}
	u := func(at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }
	e := &entry{revision: table.Revision{Term: u(1), Index: u(9)}, time: int64(u(17)), nonce: u(25)}
	n := int(binary.LittleEndian.Uint32(b[33:]))
	b = b[entryHeader:]
	if n > recordsMax || len(b) < n*recordSize || len(b)-n*recordSize > table.CommandBytes {
		return nil, fmt.Errorf("%w: an entry with %d records", errLog, n)
	}
	for i := range n {
		e.records = append(e.records, readRecord(b[i*recordSize:]))
	}
	e.command = append([]byte(nil), b[n*recordSize:]...)
	return e, nil
}

// contents is what a log holds.
type contents struct {
	state   *table.State // of the snapshot; nil: none
	entries []*entry     // after it
}

// parse reads a log. valid is the number of bytes up to the end of the last complete
// frame. An incomplete frame at the end of the file is torn: the node crashed while it
// wrote the frame, before it was acknowledged. Everything else that is invalid is damage.
func parse(b []byte) (c contents, valid int, err error) {
	if len(b) < len(header) || len(b) == len(header) && allZero(b) {
		return c, 0, nil // torn while the file was created
	}
	if string(b[:len(header)]) != header {
		return c, 0, fmt.Errorf("%w: it does not begin with the header of version 1", errLog)
	}
	var last table.Revision
	for valid = len(header); valid < len(b); {
		payload, torn, err := readFrame(b[valid:], valid)
		if torn && !(valid == len(header) && isSnapshot(b[valid:])) {
			return c, valid, nil
		}
		if torn {
			return c, valid, fmt.Errorf("%w: the snapshot is incomplete, at offset %d", errLog, valid)
		}
		if err != nil {
			return c, valid, fmt.Errorf("%w at offset %d", err, valid)
		}
		if last, err = c.add(payload, last); err != nil {
			return c, valid, fmt.Errorf("%w at offset %d", err, valid)
		}
		valid += frameHeader + len(payload)
	}
	return c, valid, nil
}

// isSnapshot reports whether a frame is a snapshot. A snapshot is synced before its file gets the
// name of the log, so it is not torn.
func isSnapshot(b []byte) bool { return len(b) > frameHeader && b[frameHeader] == kindSnapshot }

// readFrame returns the payload of the first frame of b, which begins at an offset of the file. A
// frame is torn if b ends before it, or if it ends the file and its checksum is wrong: its
// sectors were not all written. If the sector of its length was not written, the length is 0. If
// a part of the length was not written, it is any number.
func readFrame(b []byte, offset int) (payload []byte, torn bool, err error) {
	if len(b) < frameHeader {
		return nil, true, nil
	}
	n := binary.LittleEndian.Uint32(b)
	end := frameHeader + uint64(n)
	switch {
	case n < payloadHeader || n > frameMax:
		torn, err = n == 0 || tornLength(b, offset), fmt.Errorf("%w: a frame of %d bytes", errLog, n)
	case uint64(len(b)) < end:
		torn, err = true, fmt.Errorf("%w: the length of a frame is wrong", errLog)
	case crc32.Checksum(b[frameHeader:end], castagnoli) != binary.LittleEndian.Uint32(b[4:]):
		if uint64(len(b)) == end {
			return nil, true, nil
		}
		torn, err = tornLength(b, offset), fmt.Errorf("%w: the checksum of a frame is wrong", errLog)
	default:
		return b[frameHeader:end], false, nil
	}
	return nil, torn && !followsFrame(b), err
}

// sectorBytes is the smallest unit that a disk writes entirely or not at all.
const sectorBytes = 512

// tornLength reports whether the length of a frame is in two sectors, and one of them was not
// written.
func tornLength(b []byte, offset int) bool {
	first := sectorBytes - offset%sectorBytes // bytes of the frame in its first sector
	return first < 4 && (allZero(b[:first]) || allZero(b[first:min(first+sectorBytes, len(b))]))
}

func allZero(b []byte) bool { return len(bytes.TrimLeft(b, "\x00")) == 0 }

// followsFrame reports whether a complete frame begins anywhere in b after the first one.
// Then the length of the first frame is damaged, because a torn frame is the last one.
func followsFrame(b []byte) bool {
	checked := 0
	for at := frameHeader; at+frameHeader+payloadHeader <= len(b); at++ {
		n := binary.LittleEndian.Uint32(b[at:])
		if n < payloadHeader || n > frameMax || uint64(at)+frameHeader+uint64(n) > uint64(len(b)) || b[at+frameHeader] != kindEntry {
			continue
		}
		if checked++; checked > checksMax {
			return true // refuse the file rather than cut it
		}
		if crc32.Checksum(b[at+frameHeader:at+frameHeader+int(n)], castagnoli) == binary.LittleEndian.Uint32(b[at+4:]) {
			return true
		}
	}
	return false
}

// checksMax limits the time that followsFrame takes: a torn entry of a node contains few
// places that look like a frame.
const checksMax = 1000

// add adds the content of a frame.
func (c *contents) add(payload []byte, last table.Revision) (table.Revision, error) {
	switch payload[0] {
	case kindEntry:
		e, err := readEntry(payload)
		if err != nil {
			return last, err
		}
		if e.revision.Index != last.Index+1 || e.revision.Term < last.Term {
			return last, fmt.Errorf("%w: entry %v follows %v", errLog, e.revision, last)
		}
		c.entries = append(c.entries, e)
		return e.revision, nil
	case kindSnapshot:
		s, err := table.ReadState(payload[payloadHeader:])
		if err != nil {
			return last, fmt.Errorf("%w: %w", errLog, err)
		}
		c.state, c.entries = s, nil
		return s.Revision(), nil
	}
	return last, fmt.Errorf("%w: a frame of kind %d", errLog, payload[0])
}

// file is a log in a file.
type file struct {
	path string
	f    *os.File
	size int64 // of the file
	err  error // of the first failed call: the file must not be used after it
}

// openFile opens the log of a node, and creates it if there is none. It cuts a torn frame.
func openFile(dir, node string) (*file, contents, error) {
	folder := filepath.Join(dir, "wal")
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, contents{}, fmt.Errorf("table/broadcast: %w", err)
	}
	l := &file{path: filepath.Join(folder, "domain_table.0.0."+node+".bin")}
	b, err := readAll(l.path)
	if err != nil {
		return nil, contents{}, fmt.Errorf("table/broadcast: %w", err)
	}
	c, valid, err := parse(b)
	if err != nil {
		return nil, c, fmt.Errorf("%s: %w. The node can start with an empty folder: it then receives the table from the others", l.path, err)
	}
	if l.f, _, err = regular.OpenOwn(l.path, os.O_RDWR|os.O_CREATE); err != nil {
		return nil, c, fmt.Errorf("table/broadcast: %w", err)
	}
	if err := l.begin(int64(valid)); err != nil {
		return nil, c, errors.Join(fmt.Errorf("table/broadcast: %w", err), l.f.Close())
	}
	return l, c, nil
}

// readAll reads what the disk has of a regular file; nil if there is none. If a sync of the process
// before has failed, the system has data in its memory that no later sync writes to the disk.
func readAll(path string) ([]byte, error) {
	f, _, err := regular.OpenOwn(path, os.O_RDONLY)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return nil, err
	}
	pagecache.TryDrop(f)
	b, err := io.ReadAll(io.LimitReader(f, fileMax+1))
	if len(b) > fileMax {
		err = fmt.Errorf("%w: the file is too large", errLog)
	}
	return b, err
}

// begin cuts the file at a size, and writes the header if the file is empty.
func (l *file) begin(size int64) error {
	if err := l.f.Truncate(size); err != nil {
		return err
	}
	if size == 0 {
		if _, err := l.f.WriteAt([]byte(header), 0); err != nil {
			return err
		}
		size = int64(len(header))
	}
	l.size = size
	return errors.Join(l.f.Sync(), syncFolder(filepath.Dir(l.path)), syncFolder(filepath.Dir(filepath.Dir(l.path))))
}

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (l *file) append(e *entry) error {
	if l.err != nil {
		return l.err
	}
	b := appendFrame(nil, e.append(nil))
	if _, l.err = l.f.WriteAt(b, l.size); l.err == nil {
		l.err = l.f.Sync()
	}
	l.size += int64(len(b))
	return l.err
}

// install writes a new file and renames it, so that after a crash there is either the old
// log or the new one.
func (l *file) install(revision table.Revision, state []byte) error {
	if l.err != nil {
		return l.err
	}
	b := appendFrame([]byte(header), append(appendPosition(nil, kindSnapshot, revision), state...))
	f, err := regular.CreateNew(l.path + ".tmp")
	if err != nil {
		l.err = err
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync()); err == nil {
		err = errors.Join(os.Rename(l.path+".tmp", l.path), syncFolder(filepath.Dir(l.path)))
	}
	if err != nil {
		l.err = errors.Join(err, f.Close())
		return l.err
	}
	old := l.f
	l.f, l.size = f, int64(len(b))
	return old.Close()
}

func (l *file) close() error { return l.f.Close() }
