package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/topogen/topogen/spec/finding"
)

// Explain prints the explanation of a finding.
type Explain struct {
	Code string // "": list all codes
}

func newExplain(chosen *command) *cobra.Command {
	return &cobra.Command{
		Use:   "explain [CODE]",
		Short: "Explain a finding, and what to do about it",
		Long: `Explain a finding: the rule and its reason. For most findings, an example that causes it
and the corrected example follow. Without a code, list all findings.`,
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
					return fmt.Errorf("unknown finding %q: run topogen explain for a list", args[0])
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
