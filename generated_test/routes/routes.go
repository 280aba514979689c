// Package routes has an edge with each way to choose an instance.
package routes

import "github.com/topogen/topogen/runtime/topo"

type Account string

type Header struct{ Account Account }

type (
	ByString  struct{ Key string }
	ByName    struct{ Key Account }
	ByBytes   struct{ Key []byte }
	ByInt     struct{ Key int8 }
	ByUint    struct{ Key uint64 }
	ByBool    struct{ Key bool }
	ByPath    struct{ Header Header }
	ByMethod  struct{ Name string }
	ByPointer struct{ Header *Header }
	Local     struct{}
	Numbered  struct{ To int }
	Some      struct{}
	Single    struct{}
	All       struct{}
)

func (m *ByMethod) Account() string { return m.Name }

// Source runs its script once.
type Source struct {
	Script func(out *SourceSender)
	done   bool
}

func (s *Source) Ping(out *SourceSender) error {
	if s.Script != nil && !s.done {
		s.Script(out)
	}
	s.done = true
	return topo.Done
}

// Shard counts the messages that it received.
type Shard struct{ Got map[string]int }

func (s *Shard) note(name string) error {
	if s.Got == nil {
		s.Got = make(map[string]int)
	}
	s.Got[name]++
	return nil
}

func (s *Shard) ReceiveByString(*ByString) error   { return s.note("ByString") }
func (s *Shard) ReceiveByName(*ByName) error       { return s.note("ByName") }
func (s *Shard) ReceiveByBytes(*ByBytes) error     { return s.note("ByBytes") }
func (s *Shard) ReceiveByInt(*ByInt) error         { return s.note("ByInt") }
func (s *Shard) ReceiveByUint(*ByUint) error       { return s.note("ByUint") }
func (s *Shard) ReceiveByBool(*ByBool) error       { return s.note("ByBool") }
func (s *Shard) ReceiveByPath(*ByPath) error       { return s.note("ByPath") }
func (s *Shard) ReceiveByMethod(*ByMethod) error   { return s.note("ByMethod") }
func (s *Shard) ReceiveByPointer(*ByPointer) error { return s.note("ByPointer") }
func (s *Shard) ReceiveLocal(Local) error          { return s.note("Local") }
func (s *Shard) ReceiveNumbered(Numbered) error    { return s.note("Numbered") }
func (s *Shard) ReceiveSome(Some) error            { return s.note("Some") }
func (s *Shard) ReceiveSingle(Single) error        { return s.note("Single") }
func (s *Shard) ReceiveAll(All) error              { return s.note("All") }

type One struct{ Strings, Numbers, All int }

func (o *One) ReceiveByString(ByString) { o.Strings++ }
func (o *One) ReceiveNumbered(Numbered) { o.Numbers++ }
func (o *One) ReceiveAll(All)           { o.All++ }
