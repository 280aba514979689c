package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// Limits of a picture.
const (
	treePromisesDefault = 1_000
	treePromisesMax     = 100_000
	treeTasksMax        = 100 // requests for the tasks of pending promises
)

// DurableTree draws the tree of calls below a promise.
type DurableTree struct {
	Server
	ID    string
	Limit int
	JSON  bool
	Raw   bool
}

func newDurableTree(chosen *command) *cobra.Command {
	t := DurableTree{}
	cmd := &cobra.Command{
		Use:   "tree ID",
		Short: "Draw the calls and steps of an execution",
		Long: `Draw the calls and steps below the promise ID, with their states and durations. For a
pending call the process that has its task is shown. The tree is made from the tags
resonate:origin and resonate:parent of the promises.

With --json the command prints the promises in the order of the picture, each with its
depth.`,
		Example: `  topoctl durable tree order-17
  topoctl durable tree order-17 --json | jq -r '.[] | select(.state == "pending").id'`,
		Args: oneOf("the promise"),
		RunE: func(_ *cobra.Command, args []string) error {
			t.ID = args[0]
			*chosen = t
			if t.Limit < 1 || t.Limit > treePromisesMax {
				return fmt.Errorf("--limit must be from 1 to %d, got %d", treePromisesMax, t.Limit)
			}
			return t.check()
		},
	}
	cmd.Flags().IntVar(&t.Limit, "limit", treePromisesDefault, "the highest number of promises to read")
	t.addFlags(cmd.Flags())
	addJSON(cmd, &t.JSON)
	cmd.Flags().BoolVar(&t.Raw, "raw", false, "show values as they are stored")
	return cmd
}

func (t DurableTree) run(ctx context.Context, s Streams) error {
	ctx, cancel := context.WithTimeout(ctx, t.Timeout)
	defer cancel()
	b, err := t.connect()
	if err != nil {
		return err
	}
	list, more, err := t.read(ctx, b)
	if err != nil {
		return err
	}
	tree, rest := callTree(list, t.ID)
	if err := t.readTasks(ctx, b, tree); err != nil {
		return err
	}
	if t.JSON {
		err = printJSON(s.Out, newCallObjects(tree, t.Raw))
	} else {
		err = tree.draw(time.Now().UnixMilli()).print(s.Out)
	}
	if more {
		fmt.Fprintf(s.Err, "topoctl: there are more than %d promises; --limit reads more\n", t.Limit)
	}
	if root := tree.promise; len(rest) > 0 && originOf(root) == root.ID {
		fmt.Fprintf(s.Err, "topoctl: %d promises of the same origin are not below %s, such as %s\n", len(rest), oneLine(t.ID), oneLine(rest[0].ID))
	}
	return err
}

// originOf returns the origin of a promise, which is the promise itself if it has no tag.
func originOf(p *protocol.Promise) string {
	if origin := p.Tags[protocol.TagOrigin]; origin != "" {
		return origin
	}
	return p.ID
}

// read returns the promise and all promises of the same origin.
func (t *DurableTree) read(ctx context.Context, b protocol.Backend) (list []protocol.Promise, more bool, err error) {
	r, err := t.do(ctx, b, protocol.PromiseGet{ID: t.ID})
	if err != nil {
		return nil, false, err
	}
	list = append(list, *r.Promise)
	search := protocol.PromiseSearch{Tags: map[string]string{protocol.TagOrigin: originOf(r.Promise)}}
	for {
		search.Limit = min(protocol.MaxSearch, t.Limit)
		r, err := t.do(ctx, b, search)
		if err != nil {
			return nil, false, err
		}
		for i := range r.Promises {
			switch {
			case r.Promises[i].ID == t.ID:
			case len(list) == t.Limit:
				return list, true, nil
			default:
				list = append(list, r.Promises[i])
			}
		}
		if search.Cursor = r.Cursor; search.Cursor == "" {
			return list, false, nil
		}
	}
}

// readTasks reads the tasks of pending promises.
func (t *DurableTree) readTasks(ctx context.Context, b protocol.Backend, tree *callNode) error {
	left := treeTasksMax
	for _, r := range tree.rows() {
		if p := r.promise; p.State != protocol.Pending || p.Tags[protocol.TagTarget] == "" || p.Tags[protocol.TagTimer] == "true" {
			continue
		}
		if left--; left < 0 {
			return nil
		}
		result, err := t.do(ctx, b, protocol.TaskGet{ID: r.promise.ID})
		if err != nil {
			return err
		}
		r.task = result.Task
	}
	return nil
}
