package cli

import "github.com/spf13/cobra"

// buildFlags are flags that the go command takes too, as it takes them.
type buildFlags []string

// addTags gives cmd the flag --tags.
func addTags(cmd *cobra.Command, flags *buildFlags) {
	cmd.Flags().Var((*tags)(flags), "tags", "build constraints that hold, as for go build -tags: a,b")
}

// tags is the value of the flag --tags.
type tags buildFlags

func (t *tags) String() string { return "" }

func (t *tags) Type() string { return "list" }

func (t *tags) Set(list string) error {
	*t = tags{"-tags=" + list}
	return nil
}
