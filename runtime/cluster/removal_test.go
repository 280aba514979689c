package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/member"
	"github.com/topogen/topogen/runtime/transport/certs"
	"github.com/topogen/topogen/runtime/transport/grpc"
)

// TestRemovalIsRefused lists which nodes must not be removed. The reason says what to do.
func TestRemovalIsRefused(t *testing.T) {
	entry := &table.Node{Name: "n4", Boot: 1, State: table.Member}
	for _, c := range []struct {
		name   string
		of     string
		force  bool
		change func(e *evidence)
		want   string // "": it may be removed
	}{
		{name: "a dead node", of: "n4"},
		{name: "a node that has left", of: "n4", change: func(e *evidence) { e.state = member.Left }},
		{name: "no name", want: "name the node"},
		{name: "the node that was asked", of: "n1", force: true, want: `"n1" is the node that was asked: to remove it from the cluster, stop it with SIGTERM`},
		{name: "a first member", of: "n2", force: true, want: `node "n2" is a first member (n1, n2), which cannot be removed`},
		{name: "the engine broadcast", of: "n4", force: true, change: func(e *evidence) { e.lossy = true }, want: "with addresses: broadcast no node can be removed"},
		{name: "a fenced node", of: "n4", change: func(e *evidence) { e.fenced = true }, want: "node n1 is fenced: it reaches no majority of the nodes"},
		{name: "a fenced node, with force", of: "n4", force: true, change: func(e *evidence) { e.fenced = true }},
		{name: "an unknown node", of: "n9", force: true, change: func(e *evidence) { e.entry = nil }, want: `the address table has no node "n9"`},
		{name: "a node with instances", of: "n4", force: true, change: func(e *evidence) { e.instances = 3 }, want: `node "n4" must run 3 instances that are placed on it, so it cannot be removed: start it again`},
		{name: "a node that is alive", of: "n4", force: true, change: func(e *evidence) { e.state = member.Alive }, want: `node "n4" is alive, according to failure detection: stop it with SIGTERM`},
		{name: "a suspected node", of: "n4", force: true, change: func(e *evidence) { e.state = member.Suspected }, want: "has not declared it dead yet (suspected): repeat the command"},
		{name: "a node that does not answer", of: "n4", force: true, change: func(e *evidence) { e.state = member.ProbeFailed }, want: "(probe-failed)"},
		{name: "a node that was never heard of", of: "n4", change: func(e *evidence) { e.known = false }, want: `failure detection of node n1 does not know node "n4"`},
		{name: "a node that was never heard of, with force", of: "n4", force: true, change: func(e *evidence) { e.known = false }},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := &evidence{self: "n1", first: []string{"n1", "n2"}, entry: entry, known: true, state: member.Dead}
			if c.change != nil {
				c.change(e)
			}
			r := Removal{Node: c.of, Force: c.force}
			err := r.refused(e)
			if err == nil {
				err = r.refusedNow(e)
			}
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// fixedDetector is a failure detection that has seen some nodes.
type fixedDetector struct {
	member.Detector
	members []member.Member
}

func (d fixedDetector) Members() []member.Member { return d.members }
func (d fixedDetector) Fenced() bool             { return false }

// hookedTable is a table with functions that are called before its methods.
type hookedTable struct {
	table.Table
	sync func(ctx context.Context) error
	txn  func(ctx context.Context) error
	lose bool // the answer of the first transaction is lost
}

func (h *hookedTable) Sync(ctx context.Context) error {
	if h.sync != nil {
		return h.sync(ctx)
	}
	return h.Table.Sync(ctx)
}

func (h *hookedTable) Txn(ctx context.Context, guards []table.Guard, changes []table.Change) (table.Revision, error) {
	if h.txn != nil {
		if err := h.txn(ctx); err != nil {
			return table.Revision{}, err
		}
	}
	r, err := h.Table.Txn(ctx, guards, changes)
	if h.lose {
		h.lose = false
		return r, table.ErrUnknown
	}
	return r, err
}

// removingNode returns the node n1 of a cluster with the dead node n4, and its log.
func removingNode(t *testing.T) (*Node, *hookedTable, *bytes.Buffer) {
	t.Helper()
	hooked, log := &hookedTable{Table: table.NewMemory().Open()}, new(bytes.Buffer)
	if err := table.Bootstrap(t.Context(), hooked, table.Plan{Hash: "plan"}, nil, []table.Node{{Name: "n1"}}); err != nil {
		t.Fatal(err)
	}
	if err := table.Enter(t.Context(), hooked, table.Node{Name: "n4", Address: "n4:1", Boot: 7, Plan: "plan"}); err != nil {
		t.Fatal(err)
	}
	n := &Node{settings: settings{Config: Config{Nodes: map[string]string{"n1": "n1:1"}}, node: "n1"}, log: slog.New(slog.NewTextHandler(log, nil))}
	where, err := newLookup(&n.settings, hooked.Replica())
	if err != nil {
		t.Fatal(err)
	}
	detector := fixedDetector{members: []member.Member{{Name: "n1"}, {Name: "n4", State: member.Dead}}}
	n.opened.Store(&opened{table: hooked, detector: detector, lookup: where})
	return n, hooked, log
}

// TestRemoval removes a node, and logs who did it.
func TestRemoval(t *testing.T) {
	n, hooked, log := removingNode(t)
	hooked.lose = true // the transaction is repeated
	got, err := n.remove(t.Context(), "ann", Removal{Node: "n4"})
	if want := (Removed{"n4", "n4:1", table.Boot(7).String(), "member", "n1"}); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if hooked.Replica().Node("n4") != nil {
		t.Error("the table still has the node")
	}
	if want := "node=n4 boot=0000000000000007 operator=ann force=false\n"; !strings.HasSuffix(log.String(), want) || strings.Count(log.String(), "\n") != 1 {
		t.Errorf("the log is %s, want one line with %s", log, want)
	}
	if _, err := n.remove(t.Context(), "ann", Removal{Node: "n4"}); err == nil || !strings.Contains(err.Error(), "has no node") {
		t.Errorf("the second removal returned %v", err)
	}
}

// TestRemovalAndTheNextProcess lets the next process of a node join just before the
// transaction that removes the node. It must remain.
func TestRemovalAndTheNextProcess(t *testing.T) {
	n, hooked, log := removingNode(t)
	hooked.txn = func(ctx context.Context) error {
		hooked.txn = nil
		return table.Enter(ctx, hooked, table.Node{Name: "n4", Address: "n4:1", Boot: 8, Plan: "plan"})
	}
	_, err := n.remove(t.Context(), "ann", Removal{Node: "n4"})
	if err == nil || !strings.Contains(err.Error(), `node "n4" has come back in the meantime with a new process, so it was not removed`) {
		t.Errorf("got %v", err)
	}
	if got := hooked.Replica().Node("n4"); got == nil || got.Boot != 8 {
		t.Errorf("the next process is %+v in the table", got)
	}
	if log.Len() > 0 {
		t.Errorf("logged %s", log)
	}
}

// TestRemovalWithoutAMajority asks a node whose address table does not answer. The command
// ends in time, says what it has changed, and a second one does not wait behind it.
func TestRemovalWithoutAMajority(t *testing.T) {
	for _, c := range []struct {
		name    string
		timeout time.Duration // of the caller; 0: none
		hook    func(h *hookedTable)
		want    string
		least   time.Duration
		most    time.Duration
	}{
		{
			name: "the table cannot be read", least: removalTimeMax, most: removalTimeMax,
			hook: func(h *hookedTable) { h.sync = wait },
			want: "the address table has not answered within 10s: it needs a majority of the first members, or its etcd servers. So nothing was changed",
		},
		{
			name: "the caller has less time", timeout: 3 * time.Second, least: 2 * time.Second, most: 2500 * time.Millisecond,
			hook: func(h *hookedTable) { h.sync = wait },
			want: "the address table has not answered within 2.5s",
		},
		{
			name: "the outcome is not known", least: removalTimeMax, most: removalTimeMax,
			hook: func(h *hookedTable) {
				h.txn = func(ctx context.Context) error { return fmt.Errorf("%w: %w", table.ErrUnknown, wait(ctx)) }
			},
			want: `it is not known whether node "n4" was removed, repeat the command`,
		},
		{
			name: "the table has ended", hook: func(h *hookedTable) { _ = h.Close() }, want: "nothing was changed: table: closed",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, hooked, log := removingNode(t)
				c.hook(hooked)
				ctx, began := t.Context(), time.Now()
				if c.timeout > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.timeout)
					defer cancel()
				}
				if c.most > 0 {
					go func() {
						<-time.After(time.Second)
						if _, err := n.remove(ctx, "bob", Removal{Node: "n4"}); !errors.Is(err, errRemoving) {
							t.Errorf("a second command at the same time returned %v", err)
						}
					}()
				}
				_, err := n.remove(ctx, "ann", Removal{Node: "n4"})
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %s", err, c.want)
				}
				if took := time.Since(began); took < c.least || took > c.most {
					t.Errorf("it took %v, want %v to %v", took, c.least, c.most)
				}
				if log.Len() > 0 {
					t.Errorf("logged %s", log)
				}
			})
		})
	}
}

func wait(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestRemovalNeedsAnOperator asks a node with different certificates.
func TestRemovalNeedsAnOperator(t *testing.T) {
	t.Parallel() // it waits for other nodes
	r := runProgram(t, endless())
	defer r.done.Wait()
	defer r.stop()
	r.await("the nodes", func(v *View) bool { return v.State == stateRunning })
	remove := func(files *grpc.TLS, of string) error {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		_, err := Remove(ctx, r.addresses[0], files, Removal{Node: of})
		return err
	}
	issue := func(id certs.ID) *grpc.TLS {
		id.TrustDomain, id.Topology = "program", "program"
		return r.pki.issue(id)
	}
	for _, id := range []certs.ID{{Node: "n2"}, {Client: "web"}} {
		if err := remove(issue(id), "n3"); status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "is not an operator") {
			t.Errorf("%v may remove a node: %v", id, err)
		}
	}
	if err := remove(nil, "n3"); err == nil || status.Code(err) != codes.Unavailable {
		t.Errorf("a caller without a certificate may remove a node: %v", err)
	}
	ann := issue(certs.ID{Operator: "ann"})
	if err := remove(ann, "n3"); err == nil || !strings.HasPrefix(err.Error(), `node "n3" is a first member (n1, n2, n3)`) {
		t.Errorf("the operator got %v", err)
	}
	if err := remove(ann, strings.Repeat("n", requestBytesMax)); err == nil || !strings.Contains(err.Error(), "at most 4096 are allowed") {
		t.Errorf("a long name: %v", err)
	}
}
