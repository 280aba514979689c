//go:build unix

package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"testing"

	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/durable/store"
)

// A diskWrite is a write of bbolt.
type diskWrite struct {
	at   int64
	data []byte
}

func (w diskWrite) apply(b []byte) []byte {
	if more := int(w.at) + len(w.data) - len(b); more > 0 {
		b = append(b, make([]byte, more)...)
	}
	copy(b[w.at:], w.data)
	return b
}

// TestEachWriteIsLost loses each write of some commits, or writes it to the place of a meta
// page, one at a time. After that the commit ends, or the power fails. The store is refused, or
// has the state of the last commit that was answered. If the meta page of the last commit is
// lost, it has the state of the commit before.
func TestEachWriteIsLost(t *testing.T) {
	speed.NoRace(t)
	commits := speed.Pick(t, 10, 60, 60)
	s := open(t, memdir.New(t), store.Options{})
	fill(t, s)
	var writes []diskWrite
	s.HookWrites(func(f store.WriteAt) store.WriteAt {
		return func(b []byte, at int64) (int, error) {
			writes = append(writes, diskWrite{at, bytes.Clone(b)})
			return f(b, at)
		}
	})
	dir := memdir.New(t)
	opened, refused := 0, 0
	for i := 1; i <= commits; i++ {
		before, image := dump(t, s), read(t, s.File().Name())
		writes = writes[:0]
		must(t, s.Update(func(tx store.Tx) error {
			if i%10 == 5 {
				change(tx, i)
			}
			// This table is in the page of the root bucket, so the commit writes just this page. The
			// page that it uses again often has the root bucket of an earlier commit, whose
			// other pages are intact.
			tx.Put(5, []byte("small"), fmt.Append(nil, i))
			return nil
		}))
		after := dump(t, s)
		for k, lost := range writes {
			for variant := range 6 {
				place, power := []int64{-1, 0, pageBytes}[variant/2], variant%2 == 1
				b := bytes.Clone(image)
				for j, w := range writes {
					if j != k && !(power && j > k) {
						b = w.apply(b)
					} else if j == k && place >= 0 {
						b = diskWrite{place, lost.data}.apply(b)
					}
				}
				what := fmt.Sprintf("commit %d: write %d of %d (page %d) went to %d, power failure %v", i, k+1, len(writes), lost.at/pageBytes, place, power)
				got, err := state(t, dir, b)
				_, damaged := errors.AsType[*store.DamageError](err)
				unanswered := power || k == len(writes)-1
				switch {
				case damaged, errors.Is(err, store.ErrNotAStore):
					refused++
				case err != nil:
					t.Errorf("%s: %v", what, err)
				case maps.Equal(got, after), unanswered && maps.Equal(got, before):
					opened++
				default:
					t.Errorf("%s: the store has %d records, %d were written", what, len(got), len(after))
				}
			}
		}
	}
	t.Logf("%d refused, %d opened", refused, opened)
	if refused < commits {
		t.Error("too few stores were refused: the test tests little")
	}
}

// TestNumberIsNotUsedTwice: the first commit after a start is interrupted when all its pages are
// written. The next process makes another commit, and the disk loses its root page. The store
// must not have the records of the interrupted commit, which was never answered.
func TestNumberIsNotUsedTwice(t *testing.T) {
	dir := memdir.New(t)
	s := open(t, dir, store.Options{})
	fill(t, s)
	refused := 0
	rounds := speed.Pick(t, 3, 30, 30)
	for i := range rounds {
		must(t, s.Close())
		image := read(t, file(dir))
		for k := range 2 + i%3 { // attempts; the last one is answered
			must(t, os.WriteFile(file(dir), image, 0o600))
			s = open(t, dir, store.Options{})
			var writes []diskWrite
			s.HookWrites(func(f store.WriteAt) store.WriteAt {
				return func(b []byte, at int64) (int, error) {
					writes = append(writes, diskWrite{at, bytes.Clone(b)})
					return f(b, at)
				}
			})
			value := fmt.Sprint(i, " attempt ", k)
			must(t, s.Update(func(tx store.Tx) error { tx.Put(5, []byte("small"), []byte(value)); return nil }))
			if k < 1+i%3 {
				for _, w := range writes[:len(writes)-1] { // without the meta page
					image = w.apply(image)
				}
				_ = s.Close()
				continue
			}
			for lost := range writes {
				b := bytes.Clone(image)
				for j, w := range writes {
					if j != lost {
						b = w.apply(b)
					}
				}
				other := memdir.New(t)
				switch got, err := state(t, other, b); {
				case err != nil:
					refused++
				case got[string(rune(5))+"small"] != value && lost < len(writes)-1:
					t.Errorf("round %d: without write %d of %d the store has %q, %q was answered", i, lost+1, len(writes), got[string(rune(5))+"small"], value)
				}
			}
		}
	}
	must(t, s.Close())
	if refused < rounds/3 {
		t.Errorf("%d stores were refused: the test tests little", refused)
	}
}

// state returns the content of a store with the given file.
func state(t *testing.T, dir string, b []byte) (map[string]string, error) {
	t.Helper()
	must(t, os.WriteFile(file(dir), b, 0o600))
	s, err := store.Open(dir, store.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { must(t, s.Close()) }()
	return dump(t, s), nil
}
