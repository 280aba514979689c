package broadcast

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/allocated"
	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/runtime/cluster/table"
)

// writeLog writes a log with a number of entries, and returns its path and its content.
func writeLog(t *testing.T, dir string, entries int) (path string, b []byte) {
	t.Helper()
	log, from, err := openFile(dir, "n1")
	if err != nil {
		t.Fatal(err)
	}
	c := newCore("n1", table.NewReplica(), log, from)
	c.tick(1, nil)
	changes := []table.Change{
		table.Define{Plan: "p", Processors: []table.Processor{{Name: "counter", Instances: 8}}},
		table.Join{Node: table.Node{Name: "n1"}}, table.Join{Node: table.Node{Name: "n2"}},
	}
	for i := range entries {
		if i > 0 {
			changes = []table.Change{table.Assign{Processor: "counter", First: i % 8, Count: 1, Node: []string{"n1", "n2"}[i%2]}}
		}
		data, err := table.AppendCommand(nil, &table.Command{Kind: table.CommandTxn, Changes: changes})
		if err != nil {
			t.Fatal(err)
		}
		c.propose(int64(i), proposal{from: "n1", number: uint64(i + 1), data: data})
	}
	if len(c.results) != entries || c.err != nil {
		t.Fatalf("%d of %d entries were applied: %v", len(c.results), entries, c.err)
	}
	if err := log.close(); err != nil {
		t.Fatal(err)
	}
	b, err = os.ReadFile(log.path)
	if err != nil {
		t.Fatal(err)
	}
	return log.path, b
}

func TestPathAndRecords(t *testing.T) {
	dir := memdir.Quick(t)
	path, b := writeLog(t, dir, 3)
	if want := filepath.Join(dir, "wal", "domain_table.0.0.n1.bin"); path != want {
		t.Errorf("the log is in %s, want %s", path, want)
	}
	c, valid, err := parse(b)
	if err != nil || valid != len(b) || len(c.entries) != 3 {
		t.Fatalf("the log has %d entries in %d of %d bytes: %v", len(c.entries), valid, len(b), err)
	}
	want := []Record{{Time: 2, Major: Number("counter"), Container: 2, New: Number("n1")}}
	if got := c.entries[2].records; !slices.Equal(got, want) {
		t.Errorf("the last entry has the records %v, want %v", got, want)
	}
}

// TestTornLog cuts a log at each byte: an entry that is incomplete is dropped, and the
// others remain. The snapshot at the beginning was complete before the file got its name, so it
// is damaged.
func TestTornLog(t *testing.T) {
	_, b := writeLog(t, memdir.Quick(t), 3)
	before, _, err := parse(b)
	if err != nil {
		t.Fatal(err)
	}
	ends := map[int]bool{0: true, len(header): true}
	snapshot := len(header) + frameHeader + int(binary.LittleEndian.Uint32(b[len(header):]))
	for size := range len(b) {
		c, valid, err := parse(b[:size])
		if size > len(header)+frameHeader && size < snapshot {
			if !errors.Is(err, errLog) {
				t.Fatalf("cut at %d, in the snapshot: %v", size, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("cut at %d of %d: %v", size, len(b), err)
		}
		if size == len(header) || valid == size {
			ends[size] = true
		}
		if !ends[valid] || len(c.entries) > len(before.entries) {
			t.Fatalf("cut at %d: the valid part ends at %d, inside a frame", size, valid)
		}
	}
	dir := memdir.Quick(t)
	path, b := writeLog(t, dir, 3)
	if err := os.WriteFile(path, b[:len(b)-5], 0o600); err != nil {
		t.Fatal(err)
	}
	log, c, err := openFile(dir, "n1")
	if err != nil || len(c.entries) != 2 {
		t.Fatalf("a torn log has %d entries, want 2: %v", len(c.entries), err)
	}
	if err := log.append(&entry{revision: table.Revision{Term: 1, Index: c.entries[1].revision.Index + 1}}); err != nil {
		t.Fatal(err)
	}
	if err := log.close(); err != nil {
		t.Fatal(err)
	}
	if log, c, err = openFile(dir, "n1"); err != nil || len(c.entries) != 3 {
		t.Fatalf("after an append the log has %d entries, want 3: %v", len(c.entries), err)
	}
	if err := log.close(); err != nil {
		t.Error(err)
	}
}

// TestTornSectors: the last entry is torn if any of its sectors are missing, wherever it begins in
// a sector. The entries before it remain.
func TestTornSectors(t *testing.T) {
	for size := range 512 { // of the first entry, so that the second begins at each place
		for _, second := range []int{10, 200, 700, 70_000} {
			b := appendFrame([]byte(header), (&entry{revision: table.Revision{Term: 1, Index: 1}, command: bytes.Repeat([]byte{1}, size)}).append(nil))
			from := len(b)
			if place := from % 512; place > 20 && place < 490 && place%50 > 0 { // the ends of a sector are the difficult places
				break
			}
			b = appendFrame(b, (&entry{revision: table.Revision{Term: 1, Index: 2}, command: bytes.Repeat([]byte{2}, second)}).append(nil))
			sectors := min(4, (len(b)-1)/512-from/512+1)
			for missing := range 1 << sectors {
				torn := bytes.Clone(b)
				for i := range sectors {
					if missing>>i&1 != 0 {
						at := (from/512 + i) * 512
						clear(torn[max(from, at):min(at+512, len(b))])
					}
				}
				if c, valid, err := parse(torn); err != nil || len(c.entries) < 1 || missing > 0 && valid != from && !bytes.Equal(torn, b) {
					t.Fatalf("an entry at %d with %d bytes, without sectors %b: %d entries, valid up to %d: %v", from, second, missing, len(c.entries), valid, err)
				}
			}
		}
	}
}

// TestFlippedLog flips each bit of a log: damage before the last frame is refused, and no
// flip changes an entry.
func TestFlippedLog(t *testing.T) {
	_, b := writeLog(t, memdir.Quick(t), 4)
	whole, _, err := parse(b)
	if err != nil {
		t.Fatal(err)
	}
	last := len(b) - frameHeader - len(whole.entries[3].append(nil))
	for bit := range 8 * len(b) {
		flipped := bytes.Clone(b)
		flipped[bit/8] ^= 1 << (bit % 8)
		c, _, err := parse(flipped)
		switch {
		case bit/8 < last && err == nil:
			t.Fatalf("bit %d of byte %d: the damage was not detected", bit%8, bit/8)
		case err != nil && !errors.Is(err, errLog):
			t.Fatalf("bit %d of byte %d: %v", bit%8, bit/8, err)
		}
		for i, e := range c.entries {
			if !bytes.Equal(e.append(nil), whole.entries[i].append(nil)) {
				t.Fatalf("bit %d of byte %d has changed entry %d", bit%8, bit/8, i)
			}
		}
	}
}

// TestPlainRecords reads files of the document's form.
func TestPlainRecords(t *testing.T) {
	counter := Number("counter")
	records := []Record{
		{Time: 30, Major: counter, Container: 1, Old: 2, New: 3},
		{Time: 10, Major: counter, Container: 1, New: 1},
		{Time: 20, Major: counter, Container: 1, Old: 1, New: 2},
		{Time: 5, Major: counter, Minor: 7, Container: 1, New: 9},
	}
	var b []byte
	for _, r := range records {
		b = r.Append(b)
	}
	if len(b) != 28*len(records) {
		t.Fatalf("%d records have %d bytes, want 28 each", len(records), len(b))
	}
	list, torn, err := ReadPlain(append(b, "torn"...))
	if err != nil || torn != 4 || !slices.Equal(list, records) {
		t.Fatalf("got %v with %d torn bytes and the error %v", list, torn, err)
	}
	places := Places(list)
	if got := places[Container{counter, 0, 1}]; got != 3 {
		t.Errorf("the container is on node %d, want 3: the record with the highest time wins", got)
	}
	if len(places) != 2 {
		t.Errorf("got %v, want two containers", places)
	}
}

// TestLogIsShortened lets the log grow to its limit, and opens it again.
func TestLogIsShortened(t *testing.T) {
	dir := memdir.Quick(t)
	log, from, err := openFile(dir, "n1")
	if err != nil {
		t.Fatal(err)
	}
	c := newCore("n1", table.NewReplica(), log, from)
	c.tick(1, nil)
	data := bytes.Repeat([]byte{0xff}, table.CommandBytes) // refused, but in the log
	for i := range logMax/table.CommandBytes + 2 {
		c.propose(int64(i), proposal{from: "n1", number: uint64(i + 1), data: data})
	}
	if log.size > logMax {
		t.Errorf("the log has %d bytes, want at most %d", log.size, logMax)
	}
	want := c.applied()
	if err := log.close(); err != nil {
		t.Fatal(err)
	}
	log, from, err = openFile(dir, "n1")
	if err != nil {
		t.Fatal(err)
	}
	if got := newCore("n1", table.NewReplica(), log, from).last; got != want {
		t.Errorf("the log ends at %v after it was opened again, want %v", got, want)
	}
	if err := log.close(); err != nil {
		t.Error(err)
	}
}

// TestSizeAfterRestart: the entries of former processes count when the log is shortened.
func TestSizeAfterRestart(t *testing.T) {
	_, b := writeLog(t, memdir.Quick(t), 3)
	from, _, err := parse(b)
	if err != nil {
		t.Fatal(err)
	}
	want := 0
	for _, e := range from.entries {
		want += len(e.append(nil))
	}
	if c := newCore("n1", table.NewReplica(), &memoryLog{}, from); c.size != want || want == 0 {
		t.Errorf("the log has %d bytes of entries after a restart, want %d", c.size, want)
	}
}

// TestMissingSector writes zeros over the first sector of an entry: it is torn if it is
// the last one, and damage otherwise.
func TestMissingSector(t *testing.T) {
	log, _, err := openFile(memdir.Quick(t), "n1")
	if err != nil {
		t.Fatal(err)
	}
	sizes := []int64{log.size}
	for i := range 2 {
		e := &entry{revision: table.Revision{Term: 1, Index: uint64(i + 1)}, command: bytes.Repeat([]byte{1}, 3000)}
		if err := log.append(e); err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, log.size)
	}
	b, err := os.ReadFile(log.path)
	if err = errors.Join(err, log.close()); err != nil {
		t.Fatal(err)
	}
	for i, at := range sizes[:2] {
		torn := bytes.Clone(b)
		clear(torn[at : at+512])
		c, valid, err := parse(torn)
		if last := i == 1; last && (err != nil || int64(valid) != at || len(c.entries) != 1) || !last && !errors.Is(err, errLog) {
			t.Errorf("without the first sector of entry %d, %d entries end at %d: %v", i+1, len(c.entries), valid, err)
		}
	}
}

// failing is a log whose writes fail.
type failing struct{ storage }

func (failing) append(*entry) error { return errors.New("no space left on device") }

// TestFullDisk proposes a change while the disk is full: nothing is applied.
func TestFullDisk(t *testing.T) {
	log, from, err := openFile(memdir.Quick(t), "n1")
	if err != nil {
		t.Fatal(err)
	}
	defer log.close()
	c := newCore("n1", table.NewReplica(), log, from)
	c.tick(time.Now().UnixNano(), nil)
	before := c.applied()
	c.log = failing{log}
	c.propose(1, proposal{from: "n1", number: 1, data: []byte{1, 0, 0}})
	if c.err == nil || c.applied() != before || len(c.results) > 0 {
		t.Errorf("the disk is full, but the state went from %v to %v, with the results %v and the error %v", before, c.applied(), c.results, c.err)
	}
}

func FuzzMessage(f *testing.F) {
	f.Add((&message{kindChange, 1, 2, (&entry{command: []byte{1}}).append(nil)}).encode())
	f.Add((&message{kind: kindResult, body: make([]byte, 16)}).encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		var m message
		var err error
		allocated.Within(t, 0, func() { m, err = readMessage(b) })
		if err != nil {
			return
		}
		if !bytes.Equal(m.encode(), b) {
			t.Fatalf("%x is read as %+v", b, m)
		}
		_, _ = readEntry(m.body)
		_, _ = readResult(&m)
		c := &core{self: "n2", replica: table.NewReplica(), state: table.NewState(), log: discard{}}
		c.tick(1, []string{"n1", "n3"})
		c.receive(1, "n1", m)
		c.receive(1, "n3", m)
	})
}

// discard is a log that keeps nothing.
type discard struct{}

func (discard) append(*entry) error                  { return nil }
func (discard) install(table.Revision, []byte) error { return nil }
func (discard) close() error                         { return nil }

func FuzzLog(f *testing.F) {
	f.Add([]byte(header))
	f.Add(appendFrame([]byte(header), (&entry{revision: table.Revision{Term: 1, Index: 1}, command: []byte{1, 0, 0}}).append(nil)))
	f.Fuzz(func(t *testing.T, b []byte) {
		var valid int
		var err error
		allocated.Within(t, 200*len(b), func() { _, valid, err = parse(b) })
		if err == nil && valid > len(b) {
			t.Fatalf("%d of %d bytes are valid", valid, len(b))
		}
	})
}
