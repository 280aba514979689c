package cli

import (
	"context"

	"github.com/spf13/cobra"
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
	c := newCompilation(r, []string{p.File}, p.Flags)
	c.proto = true
	err := interruptibly(ctx, c.generate)
	if err == nil && !r.failed() {
		err = printed(s.Out, c.results[0].Proto)
	}
	if err != nil {
		return err
	}
	return r.finish()
}
