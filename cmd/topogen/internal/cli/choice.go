package cli

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// choice is a flag whose value is one of a few words.
type choice struct {
	value *string
	words []string
}

// addChoice adds a flag whose value is one of words. The first word is the default.
func addChoice(cmd *cobra.Command, value *string, name, usage string, words ...string) {
	*value = words[0]
	cmd.Flags().Var(choice{value, words}, name, usage)
	// An error would mean that the flag does not exist, or already has a function.
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

func (c choice) String() string {
	if c.value == nil { // the help calls String of the zero value
		return ""
	}
	return *c.value
}

func (c choice) Type() string { return strings.Join(c.words, "|") }

func (c choice) Set(word string) error {
	if !slices.Contains(c.words, word) {
		return errors.New("must be " + listed(c.words))
	}
	*c.value = word
	return nil
}

// listed returns the words as "a, b or c".
func listed(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
