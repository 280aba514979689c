package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/topo"
)

// TestAFileIsOneBatch tests one processor without a topology: a recorder collects its
// messages.
func TestAFileIsOneBatch(t *testing.T) {
	folder := filled(t)
	r := RecordBatch()
	b := Batch{folder: folder}
	if err := b.Serve(t.Context(), r.Sender()); err != nil {
		t.Fatal(err)
	}
	if want := []Payment{{"ann", 250}, {"bob", 120}}; !slices.Equal(r.Payment, want) {
		t.Errorf("sent %v, want %v", r.Payment, want)
	}
	if want := []Booked{{"1-monday.csv"}}; !slices.Equal(r.Booked, want) {
		t.Errorf("booked %v, want %v", r.Booked, want)
	}
	if want := []string{"1-monday.csv.done", "2-tuesday.csv", "3-wednesday.csv"}; !slices.Equal(names(t, folder), want) {
		t.Errorf("the folder has %v, want %v", names(t, folder), want)
	}
}

func TestAFileWithAFaultSendsNothing(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, "bad.csv", "ann,10\nbob,a lot\n")
	r := RecordBatch()
	err := (&Batch{folder: folder}).Serve(t.Context(), r.Sender())
	if err == nil || !strings.HasPrefix(err.Error(), "bad.csv: line 2: ") {
		t.Errorf("the error is %v", err)
	}
	if len(r.Payment) != 0 || !slices.Equal(names(t, folder), []string{"bad.csv.bad"}) {
		t.Errorf("sent %v, and the folder has %v", r.Payment, names(t, folder))
	}
}

// TestASecondBetweenBatches runs the topology in virtual time. A second passes between
// two batches, whether the first ended or failed, and the delay does not grow.
func TestASecondBetweenBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := filled(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		start := time.Now()
		var began []time.Duration
		topology, err := New(Processors{
			Batch: func(topo.Instance) (*Batch, error) {
				began = append(began, time.Since(start))
				return &Batch{folder, cancel}, nil
			},
			Ledger: func(topo.Instance) (*Ledger, error) { l := NewLedger(); l.out = io.Discard; return l, nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := topology.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if want := []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second}; !slices.Equal(began, want) {
			t.Errorf("instances were made at %v, want %v", began, want)
		}
		ledger := topology.Ledger(0)
		if ledger.cents["ann"] != 550 || ledger.cents["bob"] != 120 || len(ledger.files) != 2 || ledger.restarts != 3 {
			t.Errorf("the ledger has %+v", ledger)
		}
		if n := topology.Snapshot().Faults.Restarts; n != 3 {
			t.Errorf("%d restarts were counted", n)
		}
	})
}

// TestAnInterruptBetweenBatches: an interrupt between two batches ends the topology at
// once, and no batch begins afterwards.
func TestAnInterruptBetweenBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := filled(t)
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		start := time.Now()
		if err := run(ctx, []string{folder}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != 1500*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		if want := []string{"1-monday.csv.done", "2-tuesday.csv.bad", "3-wednesday.csv"}; !slices.Equal(names(t, folder), want) {
			t.Errorf("the folder has %v, want %v", names(t, folder), want)
		}
	})
}

func filled(t *testing.T) string {
	folder := t.TempDir()
	if err := fill(folder); err != nil {
		t.Fatal(err)
	}
	return folder
}

func write(t *testing.T, folder, name, text string) {
	if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func names(t *testing.T, folder string) (list []string) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}
