package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/topogen/topogen/runtime/raft"
)

// RaftBackup writes the state of a group to a file.
type RaftBackup struct {
	Node
	File string
}

func newRaftBackup(chosen *command, n *Node) *cobra.Command {
	return &cobra.Command{
		Use:   "backup FILE",
		Short: "Write the state of a group to a file",
		Long: `Write the state of a group to FILE, which must not exist. The backup contains all
updates that were acknowledged before the command. --addr may be any node of the
group; a majority must run. "topoctl raft restore" creates a new group from FILE.

When the command returns, the file is complete and checked. Until then its name is
FILE.tmp-N; delete that file if the command was killed. --timeout must be long enough
for the whole state.`,
		Example: `  topoctl raft backup ledger.backup --addr 10.0.0.1:7101
  topoctl raft backup ledger.backup --addr 10.0.0.1:7101 --timeout 1h`,
		Args: oneOf("the file for the backup"),
		RunE: func(_ *cobra.Command, args []string) error {
			*chosen = RaftBackup{*n, args[0]}
			return n.check()
		},
	}
}

func (r RaftBackup) run(ctx context.Context, s Streams) error {
	if _, err := os.Lstat(r.File); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fmt.Errorf("%s exists: name another file", oneLine(r.File)), err)
	}
	file, err := os.CreateTemp(filepath.Dir(r.File), filepath.Base(r.File)+".tmp-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }() // fails after success, because the file was renamed
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	err = r.explain(raft.OperateBackup(ctx, r.Addr, r.files(), r.Group, file))
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	i, err := raft.OpenBackup(file.Name())
	if err != nil {
		return err
	}
	if err := i.Close(); err != nil {
		return err
	}
	if err := errors.Join(os.Rename(file.Name(), r.File), syncFolder(filepath.Dir(r.File))); err != nil {
		return err
	}
	fmt.Fprintf(s.Err, "topoctl: %s contains the state of group %s up to entry %d\n", oneLine(r.File), oneLine(i.Group), i.Last)
	return nil
}

// syncFolder syncs the entries of a folder, so that a reported backup survives a power
// failure.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
