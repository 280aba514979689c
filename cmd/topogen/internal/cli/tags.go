package cli

import "github.com/spf13/cobra"

// buildFlags are flags that topogen passes to the go command unchanged.
type buildFlags []string

// addTags gives cmd the flag --tags.
func addTags(cmd *cobra.Command, flags *buildFlags) {
	cmd.Flags().Var((*tags)(flags), "tags", "build tags, as for go build -tags: a,b")
}

// tags is the value of the flag --tags.
type tags buildFlags

// String is empty because the flag has no default value to show in the help.
func (t *tags) String() string { return "" }

func (t *tags) Type() string { return "list" }

func (t *tags) Set(list string) error {
	*t = tags{"-tags=" + list}
	return nil
}
