package plan

import "github.com/topogen/topogen/spec"

// Gaps are the separators in generated names that consist of a processor's name and a word. A
// separator is empty, or it has underscores if the name without them is taken.
type Gaps struct {
	Port, Recorder, Record, Index, Sender string
}

// Port is the name of the interface with the methods that p needs: ParserProcessor.
func (p *Processor) Port() string { return p.Ident + p.Gaps.Port + "Processor" }

// Recorder is the name of the type that records what p sends in a test.
func (p *Processor) Recorder() string { return p.Ident + p.Gaps.Recorder + "Recorder" }

// Record is the name of the function that makes a recorder.
func (p *Processor) Record() string { return "Record" + p.Gaps.Record + p.Ident }

// Index is the name of p's index: ProcessorParser.
func (p *Processor) Index() string { return "Processor" + p.Gaps.Index + p.Ident }

// Sender is the name of the type of p's sender.
func (p *Processor) Sender() string { return p.Ident + p.Gaps.Sender + "Sender" }

// HasSender reports whether an exported sender is generated for p. A processor that only
// replies has no such sender.
func (p *Processor) HasSender() bool { return p.External || len(p.Sends) > 0 && p.Machine == nil }

func (p *Processor) hasRecorder() bool { return p.HasSender() && !p.External }

// joinedName is a generated name with a separator.
type joinedName struct {
	name func(*Processor) string
	gap  func(*Processor) *string
	has  func(*Processor) bool
	what string
}

// joinedNames are in order of priority: if two names collide, the first keeps its form.
// Names that handlers use come first.
var joinedNames = []joinedName{
	{(*Processor).Port, func(p *Processor) *string { return &p.Gaps.Port }, func(p *Processor) bool { return !p.External }, "the interface"},
	{(*Processor).Recorder, func(p *Processor) *string { return &p.Gaps.Recorder }, (*Processor).hasRecorder, "the recorder"},
	{(*Processor).Record, func(p *Processor) *string { return &p.Gaps.Record }, (*Processor).hasRecorder, "the recorder's constructor"},
	{(*Processor).Index, func(p *Processor) *string { return &p.Gaps.Index }, func(*Processor) bool { return true }, "the index"},
	{(*Processor).Sender, func(p *Processor) *string { return &p.Gaps.Sender }, (*Processor).HasSender, "the sender"},
}

// gaps finds joined names that are taken, and inserts underscores. An example is the sender
// of processor "x" next to a processor "x-sender".
func (b *builder) gaps() {
	uses := make(map[string]int)
	b.users(func(name, _ string, _ spec.Text) { uses[name]++ })
	for _, n := range b.plan.Names() {
		uses[n.Ident]++
	}
	for _, j := range joinedNames {
		for i := range b.plan.Processors {
			p := &b.plan.Processors[i]
			if !j.has(p) {
				continue
			}
			for uses[j.name(p)]--; uses[j.name(p)] > 0; {
				*j.gap(p) += "_"
			}
			uses[j.name(p)]++
		}
	}
}
