package cli

import (
	"context"

	"github.com/spf13/cobra"
)

// Proto prints the .proto of a topology's messages.
type Proto struct {
	File  string
	Flags buildFlags
}

func newProto(chosen *command) *cobra.Command {
	p := Proto{}
	cmd := &cobra.Command{
		Use:   "proto [FILE]",
		Short: "Print the .proto of a topology's messages",
		Long: `Print the .proto (proto3) of the messages of a topology. The default is
` + defaultTopology + ` or topology.yaml. The output describes how generated code encodes messages that leave the process, and the states
and updates that state machines keep in logs. Field numbers come from struct tags such as
` + "`topo:\"3\"`" + `, and from topology.wire.yml in the folder of the topology. Nothing is
written. A comment at the end lists messages that cannot be encoded, with the reasons.`,
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
