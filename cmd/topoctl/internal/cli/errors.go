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

// Errors prints the file of a keeper of errors.
type Errors struct {
	File   string
	Full   bool
	Format string // "text" or "json"
}

func newErrors(chosen *command) *cobra.Command {
	e := Errors{Format: "text"}
	cmd := &cobra.Command{
		Use:   "errors FILE",
		Short: "Print the errors that a topology has kept, the most frequent first",
		Long: `Print the errors and panics that a topology has kept in FILE, the most frequent
first: how often each occurred, when it did last (UTC), and its first line. The
topology may go on meanwhile.

What would command a terminal is printed as its code, \x1b for example.`,
		Example: `  topoctl errors errors.pb
  topoctl errors --full errors.pb | less
  topoctl errors --format json errors.pb | jq '.[0].text'`,
		Args: oneOf("the file that the errors are kept in"),
		RunE: func(_ *cobra.Command, args []string) error {
			e.File = args[0]
			*chosen = e
			return nil
		},
	}
	cmd.Flags().BoolVar(&e.Full, "full", false, "print all of each error, its stack too; json has that anyway")
	cmd.Flags().Var(choice{&e.Format, []string{"text", "json"}}, "format", "what to print")
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
		fmt.Fprintf(s.Err, "topoctl: %s holds no errors\n", oneLine(e.File))
		return nil
	case e.Full:
		return writeFull(s.Out, entries)
	}
	return writeTable(s.Out, entries)
}

// unreadable says why a file cannot be read, and what to do.
func unreadable(name string, err error) error {
	advice := ""
	info, statErr := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		advice = "\nA topology makes it at its first error. Name the file that its errors are kept in."
	case errors.Is(err, errtop.ErrNotRegular) && statErr == nil && info.IsDir():
		err = errors.New("it is a folder; name the file in it")
	case errors.Is(err, errtop.ErrFormat), errors.Is(err, errtop.ErrTooLarge):
		advice = "\nName the file that a topology keeps its errors in. It is replaced as a whole, so a part of it is a copy cut short."
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err // it names the file, as we do
	}
	return fmt.Errorf("cannot read %s: %s%s", oneLine(name), strings.TrimPrefix(err.Error(), "errtop: "), advice)
}
