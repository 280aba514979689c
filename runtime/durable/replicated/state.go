package replicated

import (
	"encoding/binary"
	"errors"

	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/store"
	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/internal/fields"
)

// errReplaced is the result of an entry of an engine that another engine has replaced.
var errReplaced = errors.New("replicated: another node leads, and its engine has replaced this one")

// state is what each node keeps.
type state struct {
	epoch  uint64 // of the engine that may commit; 0: no engine has begun
	url    string // of the server of that engine
	memory *store.Memory
	part   []write // of a transaction whose last entry has not come yet
}

// tables returns the tables of a state that is not the zero value.
func (s *state) tables() *store.Memory {
	if s.memory == nil {
		s.memory = store.NewMemory()
	}
	return s.memory
}

// snapshot returns a copy of the tables that later updates do not change.
func (s *state) snapshot() *store.Memory {
	if s.memory == nil {
		return store.NewMemory()
	}
	return s.memory.Snapshot()
}

// Freeze implements fsm.Freezer.
func (s *state) Freeze() *state { return &state{s.epoch, s.url, s.snapshot(), s.part} }

// entry is an update of the state: the begin of an epoch, or the records that a
// transaction wrote. A large transaction has several entries, and its records change when
// the last one is applied.
type entry struct {
	begin  string // the URL of the server whose engine begins; "": a transaction
	epoch  uint64 // of a transaction
	more   bool   // another entry of the transaction follows
	writes []write
}

// entryBytes is the size of an entry from which on a transaction continues in another one.
// It leaves room for the largest record below the 16 MiB of an update of package raft.
const entryBytes = 4 << 20

// split divides the records of a transaction among entries.
func split(epoch uint64, writes []write) (list []entry) {
	size, begin := 0, 0
	for i, w := range writes {
		if size += len(w.key) + len(w.value) + writeOverhead; size >= entryBytes && i+1 < len(writes) {
			list = append(list, entry{epoch: epoch, writes: writes[begin : i+1], more: true})
			size, begin = 0, i+1
		}
	}
	return append(list, entry{epoch: epoch, writes: writes[begin:]})
}

// writeOverhead is an upper bound of what the encoding of a write adds to its key and value.
const writeOverhead = 1 + 2*binary.MaxVarintLen64

// write is a record that was set, or deleted if value is nil.
type write struct {
	table      core.Table
	key, value []byte
}

// apply applies an entry. It returns the epoch of the state.
func (e *entry) apply(s *state) (uint64, error) {
	if e.begin != "" {
		s.epoch++
		s.url, s.part = e.begin, nil
		return s.epoch, nil
	}
	if e.epoch != s.epoch {
		return 0, errReplaced
	}
	writes := append(s.part, e.writes...)
	if e.more {
		s.part = writes
		return s.epoch, nil
	}
	s.part = nil
	err := s.tables().Update(func(tx store.Tx) error {
		for _, w := range writes {
			if w.value == nil {
				tx.Delete(w.table, w.key)
			} else {
				tx.Put(w.table, w.key, w.value)
			}
		}
		return nil
	})
	return s.epoch, err
}

var definition = fsm.Definition[state, entry, uint64]{
	Update:      (*entry).apply,
	StateCodec:  fsm.Codec[state]{Append: appendState, Consume: consumeState},
	UpdateCodec: fsm.Codec[entry]{Append: appendEntry, Consume: consumeEntry},
	ResultCodec: fsm.Codec[uint64]{
		Append: func(b []byte, v *uint64) ([]byte, error) { return binary.AppendUvarint(b, *v), nil },
		Consume: func(b []byte, v *uint64) error {
			d := newDecoder(b)
			*v = d.Uint()
			return d.End()
		},
	},
	Errors: []fsm.Sentinel{{Name: "replaced", Err: errReplaced}},
}

// A format begins each entry and each state.
const (
	formatWhole = 1
	formatPart  = 2 // an entry that another one follows, or a state with a part of a transaction
)

func appendState(b []byte, s *state) ([]byte, error) {
	format := byte(formatWhole)
	if len(s.part) > 0 {
		format = formatPart
	}
	b = binary.AppendUvarint(append(b, format), s.epoch)
	b = fields.AppendText(b, s.url)
	if len(s.part) > 0 {
		b = appendWrites(binary.AppendUvarint(b, uint64(len(s.part))), s.part)
	}
	err := s.snapshot().View(func(tx store.Tx) error {
		for r := range store.Records(tx) {
			b = fields.AppendText(fields.AppendText(append(b, byte(r.Table)), r.Key), r.Value)
		}
		return nil
	})
	return b, err
}

func consumeState(b []byte, s *state) error {
	d := newDecoder(b)
	part := d.format() == formatPart
	s.epoch, s.url = d.Uint(), string(d.Take(d.Uint()))
	if part {
		for range d.Uint() {
			if s.part = append(s.part, d.write()); d.Err != nil {
				break
			}
		}
	}
	if d.Err != nil {
		return d.Err
	}
	return s.tables().Update(func(tx store.Tx) error {
		for len(d.B) > 0 && d.Err == nil {
			if t, key, value := d.table(), d.Take(d.Uint()), d.Take(d.Uint()); d.Err == nil {
				tx.Put(t, key, value)
			}
		}
		return d.End()
	})
}

func appendEntry(b []byte, e *entry) ([]byte, error) {
	format := byte(formatWhole)
	if e.more {
		format = formatPart
	}
	b = fields.AppendText(append(b, format), e.begin)
	return appendWrites(binary.AppendUvarint(b, e.epoch), e.writes), nil
}

func appendWrites(b []byte, writes []write) []byte {
	for _, w := range writes {
		// The number before a value is its length plus one, and 0 for a deleted record.
		b = fields.AppendText(append(b, byte(w.table)), w.key)
		if w.value == nil {
			b = append(b, 0)
			continue
		}
		b = append(binary.AppendUvarint(b, uint64(len(w.value))+1), w.value...)
	}
	return b
}

func consumeEntry(b []byte, e *entry) error {
	d := newDecoder(b)
	e.more = d.format() == formatPart
	e.begin, e.epoch = string(d.Take(d.Uint())), d.Uint()
	for len(d.B) > 0 && d.Err == nil {
		e.writes = append(e.writes, d.write())
	}
	return d.End()
}

// decoder reads an encoding.
type decoder struct{ fields.Reader }

func newDecoder(b []byte) decoder { return decoder{fields.Reader{B: b, Damaged: errEncoding}} }

var errEncoding = errors.New("replicated: a damaged encoding")

func (d *decoder) format() byte {
	v := d.Byte()
	if v != formatWhole && v != formatPart && d.Err == nil {
		d.Fail("format %d is not known", v)
	}
	return v
}

func (d *decoder) write() write {
	w := write{table: d.table(), key: d.copied(d.Uint())}
	if size := d.Uint(); size > 0 {
		w.value = d.copied(size - 1)
	}
	return w
}

func (d *decoder) table() core.Table {
	t := core.Table(d.Byte())
	if t >= store.Tables {
		d.Fail("table %d does not exist", t)
	}
	return t
}

// copied returns n bytes that do not refer to the encoding. They are not nil.
func (d *decoder) copied(n uint64) []byte { return append([]byte{}, d.Take(n)...) }
