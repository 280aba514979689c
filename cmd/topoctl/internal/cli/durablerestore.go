package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/topogen/topogen/runtime/durable/store"
)

// DurableRestore makes a store of a backup.
type DurableRestore struct {
	File string
	Dir  string
	Keep bool
}

func newDurableRestore(chosen *command) *cobra.Command {
	d := DurableRestore{}
	cmd := &cobra.Command{
		Use:   "restore FILE --store DIR",
		Short: "Make a store of a backup",
		Long: `Make a store in the folder DIR of FILE, which "topoctl durable backup" has written. The
command verifies the backup before it writes, and the store after it has written it. The folder
must not have a store, unless --keep-old gives the file of that store another name, which is printed. No
server may have the store open. If the command is killed, the folder has the whole store, or
the old one, or none; repeat it then.

The store is that of the moment of the backup. What was done later is not known: clients must
repeat it, and steps that ran since then run again. Stop all workers of the old store
before the server of the restored one starts. A worker that goes on could otherwise complete
an execution that another worker has, since the versions of tasks repeat. Leases and retries
continue where they were at the backup. Deadlines that have passed since then end 10 s after
the server starts, or a minute after it if the backup is older than a month.`,
		Example: `  topoctl durable restore promises.backup --store ./promises
  topoctl durable restore promises.backup --store ./promises --keep-old`,
		Args: oneOf("the backup"),
		RunE: func(_ *cobra.Command, args []string) error {
			if d.Dir == "" {
				return errors.New("name the folder of the store: --store DIR")
			}
			d.File = args[0]
			*chosen = d
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&d.Dir, "store", "", "the folder for the store, which is created if it does not exist")
	flags.BoolVar(&d.Keep, "keep-old", false, "keep the file of a store that is in the folder under another name")
	return cmd
}

func (d DurableRestore) run(_ context.Context, s Streams) error {
	old, report, err := store.Restore(d.File, d.Dir, d.Keep)
	if old != "" {
		fmt.Fprintf(s.Err, "topoctl: the file of the old store is %s\n", oneLine(old))
	}
	if err != nil {
		return d.explain(err)
	}
	fmt.Fprintf(s.Err, "topoctl: %s has %s\n", oneLine(d.Dir), contents(&report))
	return nil
}

// explain says what to do if a backup cannot be restored.
func (d *DurableRestore) explain(err error) error {
	advice := ""
	var damage *store.DamageError
	switch {
	case errors.Is(err, store.ErrExists):
		advice = "\nName another folder, or keep the file of that store with --keep-old."
	case errors.Is(err, store.ErrInUse):
		advice = "\nStop the server first."
	case errors.As(err, &damage), errors.Is(err, store.ErrNotAStore):
		advice = "\nNothing was changed. Restore another backup."
	}
	return fmt.Errorf("cannot restore %s: %s%s", oneLine(d.File), oneLine(err.Error()), advice)
}
