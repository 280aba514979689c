// Package construct has constructors of every form.
package construct

import (
	"time"

	"github.com/topogen/topogen/runtime/topo"
)

type Go struct{}

type Start struct{}

func (Start) Ping() error { return topo.Done }

type Zero struct{ N int }

func (z *Zero) ReceiveGo(Go) {}

type Plain struct{ N int }

func NewPlain() Plain         { return Plain{1} }
func (p *Plain) ReceiveGo(Go) {}

type Pointer struct{ In topo.Instance }

func NewPointer(in topo.Instance) *Pointer { return &Pointer{in} }
func (p *Pointer) ReceiveGo(Go)            {}

type Fails struct{ Index int }

// FailAt is the instance whose construction fails; -1: none, -2: it panics.
var (
	FailAt  = -1
	FailErr error
)

func NewFails(in topo.Instance) (Fails, error) {
	if FailAt == -2 {
		panic("no luck")
	}
	if in.Index == FailAt {
		return Fails{}, FailErr
	}
	return Fails{in.Index}, nil
}
func (f *Fails) ReceiveGo(Go) {}

type PointerFails struct{ c Empty }

type Empty struct{}

func NewPointerFails(in topo.Instance, c Empty) (*PointerFails, error) { return &PointerFails{c}, nil }
func (p *PointerFails) ReceiveGo(Go)                                   {}

type Level string

type Config struct {
	Dir      string
	Glob     string
	Limit    int8
	Ratio    float32
	Huge     uint64
	Deep     Deep
	Also     *Deep
	Optional *int
	Text     *string
	Labels   map[string]int
	Every    time.Duration
	Waits    []time.Duration
	Level    Level
	Nothing  *Deep
	Unset    int
}

type Deep struct {
	On    bool `yaml:"enabled"`
	Names []string
	Pair  [2]int
}

type Configured struct {
	In     topo.Instance
	Config Config
}

func NewConfigured(in topo.Instance, c Config) *Configured { return &Configured{in, c} }
func (c *Configured) ReceiveGo(Go)                         {}

type Box[T any] struct{ Value T }

type BoxConfig struct{ Value string }

func NewBox(c BoxConfig) *Box[string] { return &Box[string]{c.Value} }
func (b *Box[T]) ReceiveGo(Go)        {}
