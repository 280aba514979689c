package replicated

import (
	"cmp"
	"context"
	"fmt"

	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/store"
)

// Backup refuses to write the store of one node: it names the command that writes the state of
// the group.
func (n *Node) Backup(context.Context, store.Sink) error {
	r := &n.config.Raft
	return fmt.Errorf("%w, but the state of the group %s: run topoctl raft backup FILE --group %s --addr %s", engine.ErrNoBackup, r.Group, r.Group, cmp.Or(r.Peers[r.Node], "HOST:PORT"))
}
