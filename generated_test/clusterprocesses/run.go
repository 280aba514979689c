package clusterprocesses

import (
	"context"
	"encoding/json"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/topogen/topogen/runtime/pool"
)

// RunNode runs the node that the environment describes until the topology ends or SIGTERM comes, and
// writes its figures to a file.
func RunNode(opts ...pool.Option) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	top, err := New(Processors{}, append(opts, pool.DrainTimeout(time.Minute), pool.Workers(2))...)
	if err != nil {
		return err
	}
	result := top.Run(ctx)
	b, err := json.Marshal(top.Snapshot().Edges)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(os.Getenv(VariableDir), "figures-"+os.Getenv(VariableStart)), b, 0o600); err != nil {
		return err
	}
	return result
}
