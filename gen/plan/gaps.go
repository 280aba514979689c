package plan

import "github.com/topogen/topogen/spec"

// Gaps are what stands between the two parts of names that are joined of a processor's
// and a word: nothing, or an underscore where the plain name means something else.
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

// HasSender reports whether a sender is generated for p. A processor that only
// replies has none.
func (p *Processor) HasSender() bool { return p.External || len(p.Sends) > 0 && p.Machine == nil }

func (p *Processor) hasRecorder() bool { return p.HasSender() && !p.External }

// joint is one of the joined names.
type joint struct {
	name func(*Processor) string
	gap  func(*Processor) *string
	has  func(*Processor) bool
	what string
}

// joints are in the order in which they give way to each other: what handlers mention
// keeps its name.
var joints = []joint{
	{(*Processor).Port, func(p *Processor) *string { return &p.Gaps.Port }, func(p *Processor) bool { return !p.External }, "the interface"},
	{(*Processor).Recorder, func(p *Processor) *string { return &p.Gaps.Recorder }, (*Processor).hasRecorder, "the recorder"},
	{(*Processor).Record, func(p *Processor) *string { return &p.Gaps.Record }, (*Processor).hasRecorder, "the recorder's constructor"},
	{(*Processor).Index, func(p *Processor) *string { return &p.Gaps.Index }, func(*Processor) bool { return true }, "the index"},
	{(*Processor).Sender, func(p *Processor) *string { return &p.Gaps.Sender }, (*Processor).HasSender, "the sender"},
}

// gaps finds the joined names that mean something else too, such as the sender of
// processor "x" where another one is called "x-sender", and opens them.
func (b *builder) gaps() {
	uses := make(map[string]int)
	b.users(func(name, _ string, _ spec.Text) { uses[name]++ })
	for _, n := range b.plan.Names() {
		uses[n.Ident]++
	}
	for _, j := range joints {
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
