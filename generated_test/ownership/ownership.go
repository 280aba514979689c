// Package ownership has messages that are copied and messages that are shared.
package ownership

import "github.com/topogen/topogen/runtime/topo"

var Clones int // of all types

type Cloned struct{ List []int }

func (c Cloned) Clone() Cloned { Clones++; return Cloned{append([]int(nil), c.List...)} }

type Shared struct{ List []int }

type Spread struct{ List []int }

func (s *Spread) Clone() Spread { Clones++; return Spread{append([]int(nil), s.List...)} }

type Must struct{ List []int }

func (m Must) Clone() Must { Clones++; return Must{append([]int(nil), m.List...)} }

type Source struct{}

func (*Source) Ping(out *SourceSender) error {
	if err := out.SendCloned(Cloned{[]int{1}}); err != nil {
		return err
	}
	if err := out.SendShared(Shared{[]int{1}}); err != nil {
		return err
	}
	if err := out.SendSpread(Spread{[]int{1}}); err != nil {
		return err
	}
	if err := out.SendMust(Must{[]int{1}}); err != nil {
		return err
	}
	return topo.Done
}

type One struct{ Cloned, Shared, Must []int }

func (o *One) ReceiveCloned(m Cloned) { o.Cloned = m.List }
func (o *One) ReceiveShared(m Shared) { o.Shared = m.List }
func (o *One) ReceiveMust(m *Must)    { o.Must = m.List }

type Two struct{ Cloned, Shared, Spread, Must []int }

func (t *Two) ReceiveCloned(m *Cloned) { t.Cloned = m.List }
func (t *Two) ReceiveShared(m *Shared) { t.Shared = m.List }
func (t *Two) ReceiveSpread(m Spread)  { t.Spread = m.List }
func (t *Two) ReceiveMust(m Must)      { t.Must = m.List }
