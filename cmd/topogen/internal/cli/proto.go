package cli

import (
	"context"
	"go/types"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/topogen/topogen/gen"
	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/gen/wire"
)

// Proto prints the messages of a topology as protobuf describes them.
type Proto struct {
	File  string
	Flags buildFlags
}

func newProto(chosen *command) *cobra.Command {
	p := Proto{}
	cmd := &cobra.Command{
		Use:   "proto [FILE]",
		Short: "Print the .proto of a topology's messages",
		Long: `Print the .proto (proto3) that describes the messages of a topology (` + defaultTopology + `
by default) as generated code writes them where they leave the process, and of
states and updates that machines keep in logs. Field numbers are those of struct
tags, ` + "`topo:\"3\"`" + `, and of topology.wire.yml beside the topology. Nothing is
written. Messages that cannot be encoded are named in a comment at the end, with
the reason.`,
		Example: `  topogen proto topology.yml >orders.proto
  topogen proto topology.yml | protoc --python_out=. -I . /dev/stdin`,
		Args:              oneTopology,
		ValidArgsFunction: completeTopologies,
		RunE: func(_ *cobra.Command, args []string) error {
			p.File = filesOrDefault(args)[0]
			*chosen = p
			return nil
		},
	}
	addTags(cmd, &p.Flags)
	return cmd
}

func (p Proto) run(ctx context.Context, s Streams) error {
	r := &report{streams: s, format: "text"}
	var text []byte
	err := interruptibly(ctx, func(ctx context.Context) (err error) {
		c := newCompilation(r, []string{p.File}, p.Flags)
		if err := c.generate(ctx); err != nil || r.failed() {
			return err
		}
		text, err = protoOf(ctx, r, c.results[0], p.Flags)
		return err
	})
	if err == nil && !r.failed() {
		err = printed(s.Out, text)
	}
	if err != nil {
		return err
	}
	return r.finish()
}

// protoOf is the .proto of a topology that binds.
func protoOf(ctx context.Context, report *report, r gen.Result, flags buildFlags) ([]byte, error) {
	own := types.NewPackage(r.Plan.ImportPath, r.Plan.Package)
	pkg, inputs, err := wire.Load(ctx, r.Dir, own, messagesOf(r.Plan), flags...)
	if err != nil {
		return nil, err
	}
	name := wire.FileName(r.Topology.File)
	kept, unread := wire.ReadFile(filepath.Join(r.Dir, name))
	schema, refused := wire.Build(pkg, inputs)
	schema, now, wrong := wire.Assign(schema, kept)
	if unread != nil {
		wrong = []wire.Problem{*unread}
	}
	for _, p := range wrong {
		report.add(p.Finding(filepath.Join(r.Dir, name), kept))
	}
	options := wire.ProtoOptions{Topology: r.Topology.Name.Value, Refused: refused}
	if string(now) != string(kept) {
		options.Loose = name
	}
	return wire.Proto(&schema, options), nil
}

// messagesOf lists the messages that the file names, each once, in the order of its edges, and then
// what machines keep in their logs.
func messagesOf(p *plan.Plan) (messages []wire.Named) {
	seen := make(map[string]bool)
	add := func(name string, t plan.TypeRef) {
		if !seen[name] {
			seen[name] = true
			messages = append(messages, wire.Named{Name: name, Type: t})
		}
	}
	for i := range p.Edges {
		e := &p.Edges[i]
		if p.OfMachine(i) { // nor does this
			continue
		}
		if e.From >= 0 && !e.DeadLetter { // which crosses no border
			add(e.Message, e.Type)
		}
		if e.Reply != "" {
			add(e.Reply, e.ReplyType)
		}
	}
	for i := range p.Processors {
		if m := p.Processors[i].Machine; m != nil && m.Kept() && m.State != "" {
			add(m.State, m.StateType)
			add(m.Update, m.UpdateType)
			if m.Result != "" {
				add(m.Result, m.ResultType)
			}
		}
	}
	return messages
}
