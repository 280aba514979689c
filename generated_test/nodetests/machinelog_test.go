package nodetests_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/topogen/topogen/generated_test/machinelog"
	"github.com/topogen/topogen/generated_test/machinelog/model"
	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/raft/wal"
	"github.com/topogen/topogen/runtime/topo"
)

// logRun runs the topology in a folder until all answers have arrived and use has returned.
func logRun(t *testing.T, dir string, use func(ctx context.Context, top *machinelog.Topology)) {
	t.Helper()
	var answers atomic.Int64
	all := make(chan struct{})
	in := func(c *raft.Config) { c.Dir, c.Peers, c.TLSCert, c.TLSKey, c.TLSCA = dir+"/"+c.Group, nil, "", "", "" }
	top, err := machinelog.New(machinelog.Processors{
		Ledger:  func(topo.Instance) (*machinelog.Ledger, error) { return machinelog.NewLedger(in) },
		Journal: func(topo.Instance) (*machinelog.Journal, error) { return machinelog.NewJournal(in) },
		Bank: func(topo.Instance) (*machinelog.Bank, error) {
			return &machinelog.Bank{Heard: func(m *machinelog.LedgerOutcome) {
				if m.Err != nil || m.Value < 1 {
					t.Errorf("%v: %d, %v", m.Update, m.Value, m.Err)
				}
				if answers.Add(1) == machinelog.Transfers {
					close(all)
				}
			}}, nil
		},
		Stock: func(topo.Instance) (*machinelog.Stock, error) { return machinelog.NewStock(in) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- top.Run(ctx) }()
	select {
	case <-all:
		use(ctx, top)
		cancel()
	case err := <-ended:
		t.Fatalf("Run returns %v", err)
	}
	if err := <-ended; err != nil {
		t.Errorf("Run returns %v", err)
	}
}

// TestMachineLogOnADisk runs twice in the same folder and checks that acknowledged updates survive.
func TestMachineLogOnADisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for times := range 2 {
		logRun(t, dir, func(ctx context.Context, top *machinelog.Topology) {
			err := top.Ledger().Read(ctx, func(a *machinelog.Accounts) {
				var sum int64
				for _, cents := range a.Cents {
					sum += cents
				}
				if want := int64(machinelog.Transfers * (times + 1)); sum != want || int64(machinelog.Count(a)) != want || a.Last == nil {
					t.Errorf("the sum is %d, %d transfers, the last is %v; want %d", sum, machinelog.Count(a), a.Last, want)
				}
			})
			if err != nil {
				t.Error(err)
			}
			place, err := top.Journal().Propose(ctx, model.Entry{Line: "line", Page: times})
			for errors.Is(err, fsm.ErrNotLeader) { // there is no leader yet
				place, err = top.Journal().Propose(ctx, model.Entry{Line: "line", Page: times})
			}
			if err != nil || place.Page != times || place.Line != 1 || place.Time.IsZero() {
				t.Errorf("%+v, %v", place, err)
			}
			if _, err := top.Journal().Propose(ctx, model.Entry{}); !errors.Is(err, model.ErrEmpty) {
				t.Errorf("an entry without a line: %v", err)
			}
			session, err := top.Ledger().OpenSession(ctx, "test")
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if _, err := top.Ledger().ProposeAs(ctx, session.Number(), 1, 1, machinelog.Transfer{To: "a", Cents: 101}); !errors.Is(err, machinelog.ErrTooMuch) {
					t.Errorf("a large transfer: %v", err)
				}
			}
			if err := top.Journal().Read(ctx, func(p *machinelog.Pages) {
				if len(*p) != times+1 {
					t.Errorf("the journal is %v", *p)
				}
			}); err != nil {
				t.Error(err)
			}
		})
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 3 {
		t.Errorf("the folder holds %v, %v", list, err)
	}
}

// startStock starts the state machine of the stock in a folder.
func startStock(t *testing.T, dir string) *machinelog.Stock {
	t.Helper()
	m, err := machinelog.NewStock(func(c *raft.Config) { c.Dir, c.Sync, c.Logger = dir, wal.None, slog.New(slog.DiscardHandler) })
	if err == nil {
		err = m.Start(t.Context(), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// TestMachineLogWithLargeElements checks that snapshots and backups work for a state whose elements
// are large in memory, with almost all bytes zero.
func TestMachineLogWithLargeElements(t *testing.T) {
	t.Parallel()
	const shelves = 2000 // 2 MB in memory, 40 kB encoded
	dir := memdir.Quick(t)
	stock := startStock(t, dir+"/stock")
	for i := range shelves {
		if _, err := stock.Propose(t.Context(), machinelog.Shelf{Number: i}); err != nil {
			t.Fatal(err)
		}
	}
	if at, err := stock.Snapshot(t.Context()); err != nil || at != stock.Status().Applied {
		t.Errorf("Snapshot: entry %d, %v", at, err)
	}
	path := dir + "/backup"
	file, err := os.Create(path)
	if err == nil {
		err = errors.Join(stock.Backup(t.Context(), file), file.Close(), stock.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	image, err := raft.OpenBackup(path)
	if err == nil {
		err = errors.Join(image.Found(dir+"/restored", image.Node, ""), image.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"stock", "restored"} {
		if err := startStock(t, dir+"/"+name).Read(t.Context(), func(s *machinelog.Shelves) {
			if len(s.ByNumber) != shelves || s.ByNumber[shelves-1].Number != shelves-1 || s.Best == nil {
				t.Errorf("%s: %d shelves, the best is %v", name, len(s.ByNumber), s.Best)
			}
		}); err != nil {
			t.Error(err)
		}
	}
}

// TestMachineLogWhichNode checks the errors of a node whose name is missing or unknown. The file
// lists the nodes, but not which of them a program is.
func TestMachineLogWhichNode(t *testing.T) {
	for node, want := range map[string]string{"": "TOPOGEN_NODE, or Config.Node, must say which of the nodes n1, n2, n3 this is", "n4": `n1, n2, n3, got "n4"`, "n2": "node.pem"} {
		t.Setenv("TOPOGEN_NODE", node)
		t.Setenv("TOPOGEN_RAFT_DIR", t.TempDir())
		top, err := machinelog.New(machinelog.Processors{})
		if err != nil {
			t.Fatal(err)
		}
		if err := top.Run(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("node %q: Run returns %v", node, err)
		}
	}
}

// TestMachineLogUnderAStepper runs without a disk in one goroutine.
func TestMachineLogUnderAStepper(t *testing.T) {
	t.Setenv("TOPOGEN_NODE", "")
	for seed := range uint64(3) {
		answers := 0
		top, err := machinelog.New(machinelog.Processors{Bank: func(topo.Instance) (*machinelog.Bank, error) {
			return &machinelog.Bank{Heard: func(m *machinelog.LedgerOutcome) {
				if m.Err != nil {
					t.Error(m.Err)
				}
				answers++
			}}, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		s := top.Stepper(seed)
		if err := s.Run(); err != nil || answers != machinelog.Transfers {
			t.Fatalf("%d answers, %v", answers, err)
		}
		s.Stop()
		if err := s.Run(); err != nil {
			t.Error(err)
		}
	}
}

// TestMachineLogMapsAreInOrder checks that equal states have equal encodings on all nodes, also with
// nested maps.
func TestMachineLogMapsAreInOrder(t *testing.T) {
	var first, firstPages []byte
	for i := range 50 {
		a := machinelog.Accounts{Cents: make(map[string]int64)}
		p := make(machinelog.Pages)
		for j := range 40 {
			k := (j*7 + i) % 40
			a.Cents[strings.Repeat("x", k)] = int64(k)
			p[k-20] = []string{"one", strings.Repeat("y", k*5)}
		}
		b, err := machinelog.AppendAccounts(nil, &a)
		if err != nil {
			t.Fatal(err)
		}
		pages, err := machinelog.AppendPages([]byte{7}, &p)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first, firstPages = b, pages
		}
		if !bytes.Equal(b, first) || !bytes.Equal(pages, firstPages) {
			t.Fatal("equal states have different encodings")
		}
		var again machinelog.Accounts
		if err := machinelog.ConsumeAccounts(b, &again); err != nil || !maps.Equal(again.Cents, a.Cents) {
			t.Fatalf("%v, %v", again, err)
		}
		var pagesAgain machinelog.Pages
		if err := machinelog.ConsumePages(pages[1:], &pagesAgain); err != nil || len(pagesAgain) != len(p) {
			t.Fatalf("%v, %v", pagesAgain, err)
		}
	}
}
