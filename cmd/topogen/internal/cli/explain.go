package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/topogen/topogen/spec/finding"
)

// Explain prints what a code of a finding means.
type Explain struct {
	Code string // "": list all codes
}

func newExplain(chosen *command) *cobra.Command {
	return &cobra.Command{
		Use:   "explain [CODE]",
		Short: "Say what the code of a finding means, and what to do",
		Long: `Say what a finding with this code means and why it matters, with an example
that has it and the example repaired. Without a code, list all of them.`,
		Example: `  topogen explain TG204`,
		Args:    cobra.MaximumNArgs(1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return finding.Codes(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			e := Explain{}
			if len(args) > 0 {
				e.Code = strings.ToUpper(args[0])
				if _, ok := finding.Explain(e.Code); !ok {
					return errors.New("there is no finding " + fmt.Sprintf("%q", args[0]) + "; topogen explain lists them")
				}
			}
			*chosen = e
			return nil
		},
	}
}

func (e Explain) run(_ context.Context, s Streams) error {
	if e.Code != "" {
		explanation, _ := finding.Explain(e.Code)
		return printed(s.Out, []byte(explanation.String()))
	}
	var list strings.Builder
	for _, code := range finding.Codes() {
		explanation, _ := finding.Explain(code)
		fmt.Fprintf(&list, "%s  %-7s  %s\n", code, explanation.Severity, explanation.Title)
	}
	return printed(s.Out, []byte(list.String()))
}
