package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/topogen/topogen/runtime/errtop"
)

// Errors prints the errors that a topology has recorded in a file.
type Errors struct {
	File   string
	Full   bool
	Format string // "text" or "json"
}

func newErrors(chosen *command) *cobra.Command {
	e := Errors{Format: "text"}
	cmd := &cobra.Command{
		Use:   "errors FILE",
		Short: "Print the errors that a topology has recorded, the most frequent first",
		Long: `Print the errors and panics that a topology has recorded in FILE, the most frequent
first. Each line has the count, the time of the last occurrence (UTC) and the first
line of the text. The topology may run at the same time.

Characters that control a terminal are printed as codes, such as \x1b.`,
		Example: `  topoctl errors errors.pb
  topoctl errors --full errors.pb | less
  topoctl errors --format json errors.pb | jq '.[0].text'`,
		Args: oneOf("the file with the errors"),
		RunE: func(_ *cobra.Command, args []string) error {
			e.File = args[0]
			*chosen = e
			return nil
		},
	}
	cmd.Flags().BoolVar(&e.Full, "full", false, "print the full text of each error with its stack; json always has it")
	cmd.Flags().Var(choice{&e.Format, []string{"text", "json"}}, "format", "output format")
	return cmd
}

func (e Errors) run(_ context.Context, s Streams) error {
	entries, err := errtop.Read(e.File)
	if err != nil {
		return unreadable(e.File, err)
	}
	switch {
	case e.Format == "json":
		return writeJSON(s.Out, entries)
	case len(entries) == 0:
		fmt.Fprintf(s.Err, "topoctl: %s contains no errors\n", oneLine(e.File))
		return nil
	case e.Full:
		return writeFull(s.Out, entries)
	}
	return writeTable(s.Out, entries)
}

// unreadable explains why a file cannot be read, and what to do.
func unreadable(name string, err error) error {
	advice := ""
	info, statErr := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		advice = "\nName the file in which the topology records its errors. The topology creates it when the first error occurs."
	case errors.Is(err, errtop.ErrNotRegular) && statErr == nil && info.IsDir():
		err = errors.New("it is a folder; name a file in it")
	case errors.Is(err, errtop.ErrFormat), errors.Is(err, errtop.ErrTooLarge):
		advice = "\nName the file in which the topology records its errors. The topology always replaces the complete file, so an incomplete file is a bad copy."
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err // without the file name, which the message below has
	}
	return fmt.Errorf("cannot read %s: %s%s", oneLine(name), strings.TrimPrefix(err.Error(), "errtop: "), advice)
}
