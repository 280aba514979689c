package wal

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	etcdwal "go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/topogen/topogen/internal/test/memdir"
)

var someMarks = []mark{
	{},
	{number: 1, durable: 1, strict: true, token: token{1, 2, 3}},
	{number: 300, durable: 7, token: token{0xff}},
	{number: math.MaxUint64 >> 1, durable: 0, strict: true},
}

// TestMarks: a mark is parsed as it was written, and every change of a bit is detected.
func TestMarks(t *testing.T) {
	state := hardState{term: 3, vote: 1 << 40, commit: 500}
	for _, m := range someMarks {
		b, err := proto.Marshal(m.proto(state))
		if err != nil {
			t.Fatal(err)
		}
		s, ok := parseState(b)
		if want := (stateRecord{state, m, true}); !ok || s != want {
			t.Errorf("%+v, %v; want %+v", s, ok, want)
		}
		for bit := range len(b) * 8 {
			b[bit/8] ^= 1 << (bit % 8)
			if s, ok := parseState(b); ok {
				t.Errorf("bit %d: %+v", bit, s)
			}
			b[bit/8] ^= 1 << (bit % 8)
		}
		for n := range b {
			if s, ok := parseState(b[:n]); ok && s.marked {
				t.Errorf("%d of %d bytes: %+v", n, len(b), s)
			}
		}
		if _, ok := parseState(append(b, 0)); ok {
			t.Error("a byte after the mark must be refused")
		}
	}
}

// TestNumbers: a mark must have the number of its record, which counts all records of the log.
func TestNumbers(t *testing.T) {
	own := token{1}
	state := func(number uint64, of token) stateRecord {
		return stateRecord{mark: mark{number: number, token: of}, marked: true}
	}
	plain := stateRecord{}
	for name, c := range map[string]struct {
		marks    markReader
		kind     recordType
		state    stateRecord
		position int
		first    bool
		fits     bool
		next     uint64
	}{
		"an entry":                       {markReader{next: 7, known: true}, typeEntry, plain, 5, false, true, 8},
		"the head":                       {markReader{next: 7, known: true}, typeMetadata, plain, 1, false, true, 7},
		"a state without a mark":         {markReader{next: 7, known: true}, typeState, plain, 5, false, true, 8},
		"a copy of that state":           {markReader{next: 7, known: true}, typeState, plain, 2, false, true, 7},
		"a state in the first segment":   {markReader{next: 0, known: true}, typeState, plain, 2, true, true, 1},
		"a mark":                         {markReader{next: 7, known: true}, typeState, state(7, own), 5, false, true, 8},
		"a copy of a mark":               {markReader{next: 7, known: true, marked: true, token: own}, typeState, state(5, own), 2, false, true, 7},
		"a mark in place of the copy":    {markReader{next: 7, known: true, marked: true, token: own}, typeState, state(7, own), 2, false, true, 8},
		"a copy where numbers begin":     {markReader{}, typeState, state(5, own), 2, false, true, 0},
		"a mark where numbers begin":     {markReader{next: 3}, typeState, state(50, own), 4, false, true, 51},
		"a mark of an earlier record":    {markReader{next: 7, known: true}, typeState, state(6, own), 5, false, false, 7},
		"a mark of a later record":       {markReader{next: 7, known: true}, typeState, state(8, own), 5, false, false, 7},
		"a copy of a later record":       {markReader{next: 7, known: true}, typeState, state(8, own), 2, false, false, 7},
		"a mark of another log":          {markReader{next: 7, known: true, marked: true, token: own}, typeState, state(7, token{2}), 5, false, false, 7},
		"a copy from another log":        {markReader{next: 7, known: true, marked: true, token: own}, typeState, state(6, token{2}), 2, false, false, 7},
		"an entry in place of the copy":  {markReader{next: 7, known: true}, typeEntry, plain, 2, false, true, 8},
		"a snapshot in place of a state": {markReader{next: 7, known: true}, typeSnapshot, plain, 2, true, true, 8},
	} {
		p := c.marks
		if fits := p.accept(c.kind, c.state, c.position, c.first); fits != c.fits || p.next != c.next {
			t.Errorf("%s: %v, next is %d; want %v, %d", name, fits, p.next, c.fits, c.next)
		}
	}
}

// TestFirstMark: the first mark of a log is synced before the next record is written. In the
// modes Interval and None the first mark of each process is synced, too.
func TestFirstMark(t *testing.T) {
	for _, mode := range []Sync{Always, Interval, None} {
		dir := filepath.Join(memdir.Quick(t), "log")
		for process := range 2 {
			l, _, err := open(dir, Identity{}, Options{Sync: mode, Interval: time.Hour}, fdatasync)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 2 {
				err := l.do(func() error { return l.saveState(hardState{term: 1, commit: uint64(i)}) })
				if err != nil {
					t.Fatal(err)
				}
				wantSynced := i == 0 && (process == 0 || mode != Always)
				if synced := l.marks.durable == l.marks.count; synced != wantSynced {
					t.Errorf("%v: mark %d of process %d synced: %v, want %v", mode, i, process, synced, wantSynced)
				}
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestMarksInData: the data of an entry may contain bytes of marks, forged by a client or copied
// from a log. After a power failure, these bytes may remain without the head of the entry. They
// must not prove that the entry was synced.
func TestMarksInData(t *testing.T) {
	const segmentName = "0000000000000000-0000000000000000.wal"
	forged := appendMarks(t, token{}, token{1, 2, 3, 4, 5, 6, 7, 8})
	for name, data := range map[string]func(segment []byte) []byte{
		"forged":     func([]byte) []byte { return forged },
		"of the log": func(segment []byte) []byte { return segment },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(memdir.Quick(t), "log")
			path := filepath.Join(dir, segmentsDir, segmentName)
			l, _, err := Open(dir, Identity{}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			save := func(index uint64, data []byte) []byte {
				t.Helper()
				entries := []*raftpb.Entry{{Index: &index, Term: new(uint64(1)), Data: data}}
				if err := l.Save(&raftpb.HardState{Term: new(uint64(1)), Commit: new(index - 1)}, entries, true); err != nil {
					t.Fatal(err)
				}
				b, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				return b
			}
			for i := range uint64(8) {
				save(i+1, nil)
			}
			before := save(9, nil)
			var shifted []byte // so that a mark begins at every offset in a word
			for i := range wordBytes {
				shifted = append(append(shifted, data(before[:1<<10])...), make([]byte, i)...)
			}
			after := save(10, shifted)
			first := 0
			for before[first] == after[first] {
				first++
			}
			next := (first/sectorBytes + 1) * sectorBytes // the head of the entry is before it
			copy(after[first:next], before[first:next])
			if err := errors.Join(l.Close(), os.WriteFile(path, after, 0o600)); err != nil {
				t.Fatal(err)
			}
			removeBut(t, filepath.Dir(path), segmentName)
			l, s, err := Open(dir, Identity{}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if len(s.Entries) != 9 {
				t.Errorf("%d entries", len(s.Entries))
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// appendMarks returns frames of marks with the given tokens, which say that very many records
// are synced.
func appendMarks(t *testing.T, tokens ...token) (b []byte) {
	t.Helper()
	for _, token := range tokens {
		state, err := proto.Marshal(mark{number: 1 << 40, durable: 1 << 40, token: token}.proto(hardState{term: 1, commit: 1}))
		if err != nil {
			t.Fatal(err)
		}
		frame, err := frameOf(etcdwal.StateType, state)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, ok := findProof(frame, token, 0); !ok {
			t.Error("findProof must find the mark")
		}
		b = append(b, frame...)
	}
	return b
}

// removeBut removes all files of a directory except name.
func removeBut(t *testing.T, dir, name string) {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if e.Name() == name {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
}
