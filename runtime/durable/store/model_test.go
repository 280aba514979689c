package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/store"
)

// model is what a store must contain: sorted maps.
type model [store.Tables]map[string]string

func (m *model) clone() *model {
	var c model
	for t := range m {
		c[t] = maps.Clone(m[t])
	}
	return &c
}

func newModel() *model {
	var m model
	for t := range m {
		m[t] = map[string]string{}
	}
	return &m
}

// ascend returns the records at or above from.
func (m *model) ascend(t core.Table, from string) (records []string) {
	for _, k := range slices.Sorted(maps.Keys(m[t])) {
		if k >= from {
			records = append(records, k+"="+m[t][k])
		}
	}
	return records
}

// compare compares a transaction with a model.
func compare(t fatal, tx store.Tx, m *model) {
	t.Helper()
	for table := range core.Table(store.Tables) {
		var got []string
		for k, v := range tx.Ascend(table, nil) {
			got = append(got, string(k)+"="+string(v))
		}
		if want := m.ascend(table, ""); !slices.Equal(got, want) {
			t.Fatalf("table %d has %.300q, want %.300q", table, got, want)
		}
	}
	if err := tx.Err(); err != nil {
		t.Fatalf("%v", err)
	}
}

type fatal interface {
	Helper()
	Fatalf(string, ...any)
}

var errCancel = errors.New("cancelled")

var (
	keys   = rapid.Custom(func(t *rapid.T) string { return fmt.Sprint("k", rapid.IntRange(0, 60).Draw(t, "n")) })
	values = rapid.OneOf(rapid.StringN(0, 20, 30), rapid.Map(rapid.IntRange(0, 12000), func(n int) string { return string(bytes.Repeat([]byte("v"), n)) }))
	tables = rapid.Map(rapid.SampledFrom([]int{0, 1, 2, store.Tables - 1}), func(n int) core.Table { return core.Table(n) })
)

// transaction carries out random operations on a transaction and a model.
func transaction(t *rapid.T, tx store.Tx, m *model) {
	for range rapid.IntRange(0, 30).Draw(t, "operations") {
		table, key := tables.Draw(t, "table"), keys.Draw(t, "key")
		switch rapid.IntRange(0, 5).Draw(t, "operation") {
		case 0, 1:
			value := values.Draw(t, "value")
			k, v := []byte(key), []byte(value)
			tx.Put(table, k, v)
			clear(k) // the store keeps neither slice
			clear(v)
			m[table][key] = value
		case 2:
			tx.Delete(table, []byte(key))
			delete(m[table], key)
		case 3:
			got := tx.Get(table, []byte(key))
			if want, ok := m[table][key]; string(got) != want || (got != nil) != ok {
				t.Fatalf("%s is %.100q (nil: %v), want %.100q", key, got, got == nil, want)
			}
		case 4:
			var got []string
			n := rapid.IntRange(1, 100).Draw(t, "records")
			for k, v := range tx.Ascend(table, []byte(key)) {
				if got = append(got, string(k)+"="+string(v)); len(got) == n {
					break
				}
			}
			want := m.ascend(table, key)
			if want = want[:min(n, len(want))]; !slices.Equal(got, want) {
				t.Fatalf("from %s: %.300q, want %.300q", key, got, want)
			}
		case 5:
			for k := range tx.Ascend(table, nil) { // deletes the first key
				k = bytes.Clone(k)
				tx.Delete(table, k)
				delete(m[table], string(k))
				break
			}
		}
	}
}

// TestModel compares stores with sorted maps, over commits, cancelled transactions,
// panics, and the end of the process.
func TestModel(t *testing.T) {
	speed.Checks(t, 15, 100, 1000)
	for name, make := range map[string]func(t *testing.T) func() store.Store{
		"memory": func(*testing.T) func() store.Store {
			m := store.NewMemory()
			return func() store.Store { m = m.Snapshot(); return m }
		},
		"disk": func(t *testing.T) func() store.Store {
			dir := memdir.New(t)
			return func() store.Store { return open(t, dir, store.Options{}) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				reopen := make(t)
				s := reopen()
				defer func() { must(t, s.Close()) }()
				m := newModel()
				r.Repeat(map[string]func(*rapid.T){
					"commit": func(r *rapid.T) {
						next := m.clone()
						must(t, s.Update(func(tx store.Tx) error { transaction(r, tx, next); return nil }))
						m = next
					},
					"cancel": func(r *rapid.T) {
						err := s.Update(func(tx store.Tx) error { transaction(r, tx, m.clone()); return errCancel })
						if !errors.Is(err, errCancel) {
							r.Fatalf("%v", err)
						}
					},
					"panic": func(r *rapid.T) {
						defer func() {
							if p := recover(); p != errCancel {
								panic(p)
							}
						}()
						_ = s.Update(func(tx store.Tx) error { transaction(r, tx, m.clone()); panic(errCancel) })
					},
					"reopen": func(*rapid.T) {
						before := s
						if _, ok := s.(*store.Disk); ok {
							must(t, before.Close())
						}
						s = reopen()
						if m, ok := before.(*store.Memory); ok { // s is its snapshot
							must(t, m.Update(func(tx store.Tx) error { tx.Put(1, []byte("other"), nil); return nil }))
							must(t, m.Close())
						}
					},
					"": func(r *rapid.T) {
						must(t, s.View(func(tx store.Tx) error { compare(r, tx, m); return nil }))
					},
				})
			})
		})
	}
}

// TestViewsAreIsolated reads an old commit while newer ones are written.
func TestViewsAreIsolated(t *testing.T) {
	each(t, func(t *testing.T, s store.Store) {
		put(t, s, "key", "old")
		must(t, s.View(func(tx store.Tx) error {
			done := make(chan struct{})
			go func() {
				for i := range 100 {
					put(t, s, "key", fmt.Sprint("new", i))
				}
				close(done)
			}()
			<-done
			if got := tx.Get(1, []byte("key")); string(got) != "old" {
				t.Errorf("a view must not change, got %q", got)
			}
			return nil
		}))
		if got := get(t, s, "key"); got != "new99" {
			t.Error(got)
		}
	})
}

// TestMisuse: errors of a transaction that no commit survives.
func TestMisuse(t *testing.T) {
	each(t, func(t *testing.T, s store.Store) {
		for name, f := range map[string]func(tx store.Tx){
			"empty key":      func(tx store.Tx) { tx.Put(1, nil, []byte("v")) },
			"long key":       func(tx store.Tx) { tx.Put(1, make([]byte, store.KeyBytesMax+1), nil) },
			"unknown table":  func(tx store.Tx) { tx.Put(store.Tables, []byte("k"), nil) },
			"get no key":     func(tx store.Tx) { tx.Get(1, nil) },
			"delete no key":  func(tx store.Tx) { tx.Delete(1, nil) },
			"ascend unknown": func(tx store.Tx) { tx.Ascend(store.Tables, nil)(func(_, _ []byte) bool { return true }) },
		} {
			err := s.Update(func(tx store.Tx) error {
				tx.Put(1, []byte("before"), nil)
				f(tx)
				if tx.Err() == nil {
					t.Errorf("%s: the transaction must have an error", name)
				}
				return nil
			})
			if err == nil || errors.Is(err, store.ErrFailed) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := s.View(func(tx store.Tx) error { tx.Put(1, []byte("k"), nil); return nil }); !errors.Is(err, store.ErrReadOnly) {
			t.Error(err)
		}
		if err := s.View(func(tx store.Tx) error { tx.Delete(1, []byte("k")); return nil }); !errors.Is(err, store.ErrReadOnly) {
			t.Error(err)
		}
		if n := len(dump(t, s)); n != 0 {
			t.Errorf("the store must be empty, it has %d records", n)
		}
		put(t, s, "key", "value")
		must(t, s.Close())
		nothing := func(store.Tx) error { t.Error("called on a closed store"); return nil }
		if err := errors.Join(s.View(nothing), s.Update(nothing)); !errors.Is(err, store.ErrClosed) {
			t.Error(err)
		}
	})
}
