package wal_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/topogen/topogen/runtime/raft/wal"
)

// damaged is a log whose files are spoiled one way after another.
type damaged struct {
	dir   string
	files map[string][]byte // as they are when nothing is wrong
	want  wal.Stored
}

// newDamaged closes the log, and keeps what it consists of.
func newDamaged(t *testing.T, l wal.Log, dir string) *damaged {
	t.Helper()
	must(t, l.Close())
	d := &damaged{dir: dir, files: make(map[string][]byte)}
	d.keep(t)
	l, d.want = open(t, dir, wal.Options{}) // has the engine do what it does to the end of the file
	must(t, l.Close())
	d.keep(t)
	return d
}

func (d *damaged) keep(t *testing.T) {
	t.Helper()
	for _, name := range append(files(t, d.dir, "wal", "*.wal"), files(t, d.dir, "snap", "*.snap")...) {
		b, err := os.ReadFile(name)
		must(t, err)
		d.files[name] = b
	}
}

// open opens the log with a file's content in place of what it is.
func (d *damaged) open(t *testing.T, name string, content []byte) (wal.Stored, error) {
	t.Helper()
	must(t, os.WriteFile(name, content, 0o600))
	l, s, err := wal.Open(d.dir, own, wal.Options{})
	if err != nil {
		if after, readErr := os.ReadFile(name); readErr != nil || string(after) != string(content) {
			t.Fatalf("the damaged file, %d bytes of %s, was changed: %v; opened: %v", len(content), name, readErr, err)
		}
	} else {
		must(t, l.Close())
	}
	must(t, os.WriteFile(name, d.files[name], 0o600))
	return s, err
}

// last is the path of the last segment.
func (d *damaged) last(t *testing.T) string {
	t.Helper()
	all := files(t, d.dir, "wal", "*.wal")
	return all[len(all)-1]
}

// isPrefix reports whether some of the last entries are missing, at most.
func isPrefix(part, whole wal.Stored) bool {
	if len(part.Entries) > len(whole.Entries) {
		return false
	}
	whole.Entries = whole.Entries[:len(part.Entries)]
	whole.State = part.State
	return diff(whole, part) == ""
}

// smallLog has each kind of record, in two segments, and a snapshot. It ends with
// the entries last.
func smallLog(t *testing.T, last ...*raftpb.Entry) *damaged {
	dir := inMemory(t)
	l, _ := open(t, dir, wal.Options{})
	must(t, l.Save(state(1, 1, 0), []*raftpb.Entry{entry(1, 1, ""), entry(2, 1, strings.Repeat("data", 100))}, true))
	must(t, l.Save(state(1, 1, 2), nil, false))
	must(t, l.SaveSnapshot(snapshot(2, 1, "a state")))
	must(t, l.Save(nil, []*raftpb.Entry{{Type: raftpb.EntryConfChangeV2.Enum(), Index: new(uint64(3)), Term: new(uint64(1)), Data: []byte{1}}}, true))
	must(t, l.Save(nil, []*raftpb.Entry{entry(4, 1, strings.Repeat("more", 1000))}, true))
	must(t, l.Save(state(2, 3, 4), []*raftpb.Entry{entry(5, 2, ""), entry(6, 2, "six")}, true))
	must(t, l.Save(state(2, 3, 5), last, true))
	return newDamaged(t, l, dir)
}

// thorough is 1 where CI is set, else step.
func thorough(step int) int {
	if os.Getenv("CI") != "" {
		return 1
	}
	return step
}

// TestFlippedBits: a bit of a file that has flipped, whichever, is found: the error
// names the file, and where. In the space behind the end it may do no harm.
func TestFlippedBits(t *testing.T) {
	zeros := make([]byte, 1500) // which fill a sector
	for name, last := range map[string][]*raftpb.Entry{
		"a state at the end": nil,
		"an entry":           {entry(7, 2, "seven")},
		"64 bytes":           {{Index: new(uint64(7)), Term: new(uint64(2)), Data: make([]byte, 45)}},
		"zeros":              {{Index: new(uint64(7)), Term: new(uint64(2)), Data: zeros}},
		"zeros in data":      {{Index: new(uint64(7)), Term: new(uint64(2)), Data: append(append([]byte("from"), zeros...), "to"...)}},
	} {
		t.Run(name, func(t *testing.T) {
			step := thorough(301) // so that all bits of bytes come in turn
			if name != "zeros in data" {
				step = max(step, 7)
			}
			d := smallLog(t, last...)
			if len(d.files) != 3 {
				t.Fatalf("%d files", len(d.files))
			}
			for file, content := range d.files {
				end := len(strings.TrimRight(string(content), "\x00"))
				for bit := rand.IntN(step); bit < len(content)*8; bit += step {
					if bit/8 > end+600 && bit%1009 != 0 { // far behind the end
						continue
					}
					b := append([]byte(nil), content...)
					b[bit/8] ^= 1 << (bit % 8)
					s, err := d.open(t, file, b)
					var damage *wal.DamageError
					switch {
					case err == nil && bit/8 >= end && diff(d.want, s) == "":
					case err == nil:
						t.Errorf("bit %d of byte %d of %s, of which %d are used: it opens\n%s", bit%8, bit/8, filepath.Base(file), end, diff(d.want, s))
					case !errors.As(err, &damage) || damage.File != file || damage.Offset > max(int64(bit/8), 16):
						t.Errorf("bit %d of byte %d of %s, of which %d are used: %v", bit%8, bit/8, filepath.Base(file), end, err)
					}
				}
			}
		})
	}
}

// TestTruncated: a last segment that ends anywhere is a prefix, or refused.
func TestTruncated(t *testing.T) {
	d := smallLog(t, entry(7, 2, strings.Repeat("seven", 300)))
	file := d.last(t)
	entries := make(map[int]int)
	for n := 0; n < len(d.files[file]); n += thorough(29) {
		s, err := d.open(t, file, d.files[file][:n])
		switch {
		case err == nil && isPrefix(s, d.want):
			entries[len(s.Entries)]++
		case err == nil:
			t.Fatalf("%d bytes: %s", n, diff(d.want, s))
		case !errors.Is(err, wal.ErrDamaged) || n > 200: // the head
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
	for n := range len(d.want.Entries) {
		if n >= 2 && entries[n+1] == 0 { // the others are in the segment before
			t.Errorf("no length has %d entries: %v", n+1, entries)
		}
	}
	all := files(t, d.dir, "wal", "*.wal")
	for n := 0; n < len(d.files[all[0]]); n += thorough(29) {
		if _, err := d.open(t, all[0], d.files[all[0]][:n]); !errors.Is(err, wal.ErrDamaged) {
			t.Fatalf("the first segment has %d bytes: %v", n, err)
		}
	}
}

// TestTornWrites: of what was not synced, any sectors may be missing after a power
// failure. A batch with one entry is cut off then (unless its state was in the
// missing sector and all of the entry is there, which these are not); what was synced
// stays. Where a whole record is behind the missing sector, the log is refused.
func TestTornWrites(t *testing.T) {
	const sector = 512
	for _, count := range []int{1, 2, 3} {
		t.Run(fmt.Sprintf("%d entries", count), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(count), 0))
			cut, refused := 0, 0
			for range 12 {
				dir := inMemory(t)
				l, _ := open(t, dir, wal.Options{})
				must(t, l.Save(state(1, 1, 0), []*raftpb.Entry{entry(1, 1, strings.Repeat("x", rng.IntN(sector)))}, true))
				file := files(t, dir, "wal", "*.wal")[0]
				synced, err := os.ReadFile(file)
				must(t, err)
				var batch []*raftpb.Entry
				for i := range count {
					data := make([]byte, rng.IntN(4*sector/count))
					for i := range data {
						data[i] = byte(rng.Uint32()) | 1
					}
					batch = append(batch, &raftpb.Entry{Index: new(uint64(i + 2)), Term: new(uint64(1)), Data: data})
				}
				must(t, l.Save(state(1, 1, 1), batch, true))
				d := newDamaged(t, l, dir)
				var written []int // sectors
				for at := 0; at < len(synced); at += sector {
					if string(synced[at:at+sector]) != string(d.files[file][at:at+sector]) {
						written = append(written, at)
					}
				}
				for missing := range 1 << len(written) {
					b := append([]byte(nil), d.files[file]...)
					for i, at := range written {
						if missing>>i&1 != 0 {
							copy(b[at:at+sector], synced[at:at+sector])
						}
					}
					s, err := d.open(t, file, b)
					switch {
					case err == nil && isPrefix(s, d.want) && len(s.Entries) >= 1 && (missing != 0 || len(s.Entries) == 1+count):
						cut++
					case errors.Is(err, wal.ErrDamaged) && missing != 0 && count > 1:
						refused++
					default:
						t.Fatalf("without %b of %v: %v\n%s", missing, written, err, diff(d.want, s))
					}
				}
			}
			t.Logf("%d cut, %d refused", cut, refused)
			if count > 1 && refused == 0 {
				t.Error("none is refused")
			}
		})
	}
}

// TestMissingSector: a sector of what was synced is missing: with whole records
// behind it that is damage.
func TestMissingSector(t *testing.T) {
	d := smallLog(t, entry(7, 2, strings.Repeat("seven", 300)))
	for file, content := range d.files {
		end := len(strings.TrimRight(string(content), "\x00"))
		if file == d.last(t) {
			end -= 1500 + 512 // the last entry
		}
		for at := 0; at < end; at += 512 {
			b := append([]byte(nil), content...)
			clear(b[at:min(at+512, len(b))])
			if _, err := d.open(t, file, b); !errors.Is(err, wal.ErrDamaged) {
				t.Errorf("%s without the sector at %d: %v", file, at, err)
			}
		}
	}
}

// TestNewSegmentNotSynced: in the modes that do not sync a segment before it is
// there, an empty one at the end is the trace of a crash; else it is damage.
func TestNewSegmentNotSynced(t *testing.T) {
	d := smallLog(t)
	file := d.last(t)
	b := make([]byte, len(d.files[file]))
	if _, err := d.open(t, file, b); !errors.Is(err, wal.ErrDamaged) {
		t.Error(err)
	}
	must(t, os.WriteFile(file, b, 0o600))
	l, s := open(t, d.dir, wal.Options{Sync: wal.Interval})
	if !isPrefix(s, d.want) || len(s.Entries) != 2 {
		t.Error(diff(d.want, s))
	}
	must(t, l.Save(state(2, 3, 5), []*raftpb.Entry{entry(5, 2, "again")}, true))
	l, s = reopened(t, l, d.dir)
	if len(s.Entries) != 3 || string(s.Entries[2].GetData()) != "again" {
		t.Errorf("%+v", s)
	}
	must(t, l.Close())
}
