package fsm

import "github.com/topogen/topogen/runtime/internal/fields"

// reader reads entries and snapshots, which may be damaged.
type reader struct{ fields.Reader }

func newReader(b []byte) reader { return reader{fields.Reader{B: b, Damaged: ErrDamaged}} }
