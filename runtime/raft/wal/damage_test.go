package wal_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/raft/wal"
)

// damaged is a log whose files a test damages in different ways.
type damaged struct {
	dir   string
	files map[string][]byte // the undamaged contents
	want  wal.Stored
}

// newDamaged closes the log and reads its files.
func newDamaged(t *testing.T, l wal.Log, dir string) *damaged {
	t.Helper()
	must(t, l.Close())
	d := &damaged{dir: dir, files: make(map[string][]byte)}
	d.keep(t)
	l, d.want = open(t, dir, wal.Options{})
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

// open opens the log with a damaged content of one file. Then it restores the file.
func (d *damaged) open(t *testing.T, name string, content []byte) (wal.Stored, error) {
	t.Helper()
	must(t, os.WriteFile(name, content, 0o600))
	l, s, err := wal.Open(d.dir, own, wal.Options{})
	if err != nil {
		if after, readErr := os.ReadFile(name); readErr != nil || string(after) != string(content) {
			t.Fatalf("Open must not change the damaged file %s of %d bytes: %v; Open returned: %v", name, len(content), readErr, err)
		}
	} else {
		must(t, l.Close())
	}
	must(t, os.WriteFile(name, d.files[name], 0o600))
	return s, err
}

// last returns the path of the last segment.
func (d *damaged) last(t *testing.T) string {
	t.Helper()
	all := files(t, d.dir, "wal", "*.wal")
	return all[len(all)-1]
}

// isPrefix reports whether the two logs differ only by missing entries at the end.
func isPrefix(part, whole wal.Stored) bool {
	if len(part.Entries) > len(whole.Entries) {
		return false
	}
	whole.Entries = whole.Entries[:len(part.Entries)]
	whole.State = part.State
	return diff(whole, part) == ""
}

// smallLog creates a log with records of each type in two segments, and a snapshot. It ends
// with the given entries.
func smallLog(t *testing.T, last ...*raftpb.Entry) *damaged {
	t.Helper()
	l, dir := openLog(t, last...)
	return newDamaged(t, l, dir)
}

// openLog creates a small log and does not close it.
func openLog(t *testing.T, last ...*raftpb.Entry) (wal.Log, string) {
	t.Helper()
	dir := memdir.New(t)
	l, _ := open(t, dir, wal.Options{})
	must(t, l.Save(state(1, 1, 0), []*raftpb.Entry{entry(1, 1, ""), entry(2, 1, strings.Repeat("data", 100))}, true))
	must(t, l.Save(state(1, 1, 2), nil, false))
	must(t, l.SaveSnapshot(snapshot(2, 1, "a state")))
	must(t, l.Save(nil, []*raftpb.Entry{{Type: raftpb.EntryConfChangeV2.Enum(), Index: new(uint64(3)), Term: new(uint64(1)), Data: []byte{1}}}, true))
	must(t, l.Save(nil, []*raftpb.Entry{entry(4, 1, strings.Repeat("more", 1000))}, true))
	must(t, l.Save(state(2, 3, 4), []*raftpb.Entry{entry(5, 2, ""), entry(6, 2, "six")}, true))
	must(t, l.Save(state(2, 3, 5), last, true))
	return l, dir
}

// thorough returns the distance of the places that a test damages: step in a quick run, and
// 1 in a long one.
func thorough(t *testing.T, step int) int {
	t.Helper()
	return speed.Pick(t, step, max(1, step/43), 1) // 7 for 301
}

// TestFlippedBits: each flipped bit of a file is detected, and the error names the file and
// the offset. In the space after the last record a flipped bit may be ignored.
func TestFlippedBits(t *testing.T) {
	speed.NoRace(t)
	zeros := make([]byte, 1500) // they fill at least one sector
	for name, last := range map[string][]*raftpb.Entry{
		"a state at the end": nil,
		"an entry":           {entry(7, 2, "seven")},
		"64 bytes":           {{Index: new(uint64(7)), Term: new(uint64(2)), Data: make([]byte, 45)}},
		"zeros":              {{Index: new(uint64(7)), Term: new(uint64(2)), Data: zeros}},
		"zeros in data":      {{Index: new(uint64(7)), Term: new(uint64(2)), Data: append(append([]byte("from"), zeros...), "to"...)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			step := speed.Pick(t, 301, 7, 1) // not divisible by 8, so that it varies the bit within a byte
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
					if bit/8 > end+600 && bit%1009 != 0 { // far after the last record
						continue
					}
					b := append([]byte(nil), content...)
					b[bit/8] ^= 1 << (bit % 8)
					s, err := d.open(t, file, b)
					var damage *wal.DamageError
					switch {
					case err == nil && bit/8 >= end && diff(d.want, s) == "":
					case err == nil:
						t.Errorf("bit %d of byte %d of %s, of which %d are used: Open must fail\n%s", bit%8, bit/8, filepath.Base(file), end, diff(d.want, s))
					case !errors.As(err, &damage) || damage.File != file || damage.Offset > max(int64(bit/8), 16):
						t.Errorf("bit %d of byte %d of %s, of which %d are used: %v", bit%8, bit/8, filepath.Base(file), end, err)
					}
				}
			}
		})
	}
}

// TestTruncated: Open refuses a segment that is shorter than when it was created, and the
// error contains its length. A segment can be longer than that, and after a power failure
// it can end anywhere beyond that length: then the log is a prefix, or Open refuses it.
func TestTruncated(t *testing.T) {
	speed.NoRace(t)
	l, dir := openLog(t, entry(7, 2, strings.Repeat("seven", 1200)))
	d := &damaged{dir: filepath.Join(memdir.New(t), "log"), files: make(map[string][]byte)}
	crashed := copied(t, dir) // before Close, which would start a new segment
	crashed.write(t, d.dir)
	for name, content := range crashed {
		d.files[filepath.Join(d.dir, name)] = content
	}
	l, d.want = reopened(t, l, dir)
	must(t, l.Close())
	if size := len(d.files[d.last(t)]); size < segmentBytes+1000 {
		t.Fatalf("the last segment has %d bytes", size)
	}
	for file, content := range d.files {
		for n := 0; n < len(content); n += speed.Pick(t, 29, 3, 1) {
			s, err := d.open(t, file, content[:n])
			damage, is := errors.AsType[*wal.DamageError](err)
			switch short := strings.HasSuffix(file, ".wal") && n < segmentBytes; {
			case short && !(is && damage.File == file && strings.Contains(damage.Reason, fmt.Sprintf("a segment must have at least %d bytes, got %d", segmentBytes, n))):
				t.Fatalf("%d bytes of %s: %v", n, file, err)
			case !is && (err != nil || file != d.last(t) || !isPrefix(s, d.want) || len(s.Entries) < len(d.want.Entries)-1):
				t.Fatalf("%d bytes of %s: %v\n%s", n, file, err, diff(d.want, s))
			}
		}
	}
}

// image is the content of each file in the directory of a log.
type image map[string][]byte

// write writes the files to a new directory.
func (img image) write(t *testing.T, dir string) {
	t.Helper()
	must(t, os.RemoveAll(dir))
	for _, part := range []string{"wal", "snap"} {
		must(t, os.MkdirAll(filepath.Join(dir, part), 0o700))
	}
	for name, b := range img {
		must(t, os.WriteFile(filepath.Join(dir, name), b, 0o600))
	}
}

// copied returns a copy of the files of an open log.
func copied(t *testing.T, dir string) image {
	t.Helper()
	img := make(image)
	for _, path := range append(files(t, dir, "wal", "*.wal"), files(t, dir, "snap", "*.snap")...) {
		b, err := os.ReadFile(path)
		must(t, err)
		img[strings.TrimPrefix(path, dir+"/")] = b
	}
	return img
}

// TestTornWrites: after a power failure any sectors of unsynced records may be missing. Open
// removes the first incomplete record and all records after it. Synced records stay.
func TestTornWrites(t *testing.T) {
	const segment = "wal/0000000000000000-0000000000000000.wal"
	for _, count := range []int{1, 2, 3, 7} {
		t.Run(fmt.Sprintf("%d entries", count), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(count), 0))
			entries := make(map[int]int)
			torn := memdir.New(t)
			for range speed.Pick(t, 6, 12, 100) {
				dir := memdir.New(t)
				l, _ := open(t, dir, wal.Options{})
				first := entry(1, 1, strings.Repeat("x", rng.IntN(sector)))
				must(t, l.Save(state(1, 1, 0), []*raftpb.Entry{first}, true))
				synced := copied(t, dir)
				var batch []*raftpb.Entry
				for i := range count {
					data := make([]byte, rng.IntN(4*sector/count))
					for i := range data {
						data[i] = byte(rng.Uint32())
					}
					batch = append(batch, &raftpb.Entry{Index: new(uint64(i + 2)), Term: new(uint64(1)), Data: data})
				}
				must(t, l.Save(state(1, 1, 1), batch, true))
				saved := copied(t, dir)
				want := wal.Stored{State: state(1, 1, 1), Entries: append([]*raftpb.Entry{first}, batch...)}
				must(t, l.Close())
				var written []int // sectors
				for at := 0; at < len(synced[segment]); at += sector {
					if string(synced[segment][at:at+sector]) != string(saved[segment][at:at+sector]) {
						written = append(written, at)
					}
				}
				for missing := range 1 << len(written) {
					b := append([]byte(nil), saved[segment]...)
					for i, at := range written {
						if missing>>i&1 != 0 {
							copy(b[at:at+sector], synced[segment][at:at+sector])
						}
					}
					image{segment: b}.write(t, torn)
					l, s, err := wal.Open(torn, own, wal.Options{})
					if err != nil || !isPrefix(s, want) || len(s.Entries) < 1 || missing == 0 && len(s.Entries) != 1+count {
						t.Fatalf("without %b of %v: %v\n%s", missing, written, err, diff(want, s))
					}
					entries[len(s.Entries)]++
					must(t, l.Close())
				}
			}
			t.Logf("number of trials by number of remaining entries: %v", entries)
			if len(entries) < min(4, 1+count) || entries[1] == 0 || entries[1+count] == 0 {
				t.Error("the trials must include logs with all, some and no unsynced entries")
			}
		})
	}
}

// TestMissingSector: a missing sector of synced records is damage if complete records
// follow.
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

// TestNewSegmentNotSynced: the modes Interval and None do not sync a segment before it gets
// its name. If such a log ends with an empty segment, Open removes the segment, in every mode
// of Open. In a log that was written in mode Always it is damage.
func TestNewSegmentNotSynced(t *testing.T) {
	for _, written := range []wal.Sync{wal.Always, wal.Interval, wal.None} {
		for _, opened := range []wal.Sync{wal.Always, wal.Interval, wal.None} {
			dir := memdir.New(t)
			l, _ := open(t, dir, wal.Options{Sync: written, Interval: time.Hour})
			must(t, l.Save(state(1, 1, 0), []*raftpb.Entry{entry(1, 1, ""), entry(2, 1, strings.Repeat("data", 1000))}, true))
			must(t, l.Save(nil, []*raftpb.Entry{entry(3, 1, "")}, true))
			img := copied(t, dir)
			must(t, l.Close())
			const last = "wal/0000000000000001-0000000000000003.wal"
			if len(img[last]) != segmentBytes {
				t.Fatalf("%v: the log must have a second segment, got %d files", written, len(img))
			}
			clear(img[last])
			img.write(t, dir)
			l, s, err := wal.Open(dir, own, wal.Options{Sync: opened, Interval: time.Hour})
			if written == wal.Always {
				if !errors.Is(err, wal.ErrDamaged) {
					t.Errorf("opened with %v: %v", opened, err)
				}
				continue
			}
			must(t, err)
			if len(s.Entries) != 2 {
				t.Errorf("%v, opened with %v: %d entries", written, opened, len(s.Entries))
			}
			must(t, l.Save(state(2, 3, 0), []*raftpb.Entry{entry(3, 2, "again")}, true))
			l, s = reopened(t, l, dir)
			if len(s.Entries) != 3 || string(s.Entries[2].GetData()) != "again" {
				t.Errorf("%+v", s)
			}
			must(t, l.Close())
		}
	}
}
