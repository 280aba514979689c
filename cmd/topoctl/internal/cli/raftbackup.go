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
	"github.com/topogen/topogen/runtime/transport/grpc"
)

// RaftBackup writes the state of a group into a file.
type RaftBackup struct {
	Node
	File string
}

func newRaftBackup(chosen *command, n *Node) *cobra.Command {
	return &cobra.Command{
		Use:   "backup FILE",
		Short: "Write the state of a group into a file",
		Long: `Write the state of a group into FILE, which must not exist. It holds all updates
that were acknowledged before. Any node of the group can be asked; a majority must
run. "topoctl raft restore" makes a new group of the file.

The file is complete and checked when the command returns. Until then it is beside FILE,
as FILE.tmp-N; delete that where the command was killed. --timeout must be long
enough for the whole state.`,
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
		return errors.Join(fmt.Errorf("%s is there already: name another file", oneLine(r.File)), err)
	}
	file, err := os.CreateTemp(filepath.Dir(r.File), filepath.Base(r.File)+".tmp-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }() // it is not there any more if all went well
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	var files *grpc.TLS
	if r.Cert != "" {
		files = &grpc.TLS{Cert: r.Cert, Key: r.Key, CA: r.CA}
	}
	err = r.explain(raft.OperateBackup(ctx, r.Addr, files, r.Group, file))
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
	fmt.Fprintf(s.Err, "topoctl: %s holds the state of group %s up to entry %d\n", oneLine(r.File), oneLine(i.Group), i.Last)
	return nil
}

// syncFolder makes durable which files are in a folder: a backup that the command has
// reported is there after a power failure.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
