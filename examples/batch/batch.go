package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/topogen/topogen/runtime/topo"
)

// Batch sends the payments of one file in a folder. Each file is handled by a new Batch,
// so no state of the previous file remains.
type Batch struct {
	folder  string
	onEmpty func() // is called if there is no file; may be nil
}

// Serve handles the first file. After it has returned, with or without an error, a new
// instance handles the next file, because the topology declares restart: always.
func (b *Batch) Serve(_ context.Context, out *BatchSender) error {
	files, err := filepath.Glob(filepath.Join(b.folder, "*.csv")) // in alphabetical order
	if err != nil {
		return err
	}
	if len(files) == 0 {
		if b.onEmpty != nil {
			b.onEmpty()
		}
		return nil
	}
	payments, err := read(files[0])
	if err != nil {
		// Rename the file, or the next instance would fail too.
		if err := os.Rename(files[0], files[0]+".bad"); err != nil {
			return err
		}
		return err
	}
	for _, p := range payments {
		if err := out.SendPayment(p); err != nil {
			return err // topo.ErrStopping: the file stays for the next run of the program
		}
	}
	// If the process ends before the rename, the file is handled twice.
	if err := os.Rename(files[0], files[0]+".done"); err != nil {
		return err
	}
	return out.SendBooked(Booked{filepath.Base(files[0])})
}

// read reads the whole file before anything is sent, so that no payment of an invalid
// file is sent.
func read(path string) ([]Payment, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := csv.NewReader(file)
	lines.FieldsPerRecord = 2
	records, err := lines.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	payments := make([]Payment, len(records))
	for i, r := range records {
		cents, err := strconv.Atoi(r[1])
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", filepath.Base(path), i+1, err)
		}
		payments[i] = Payment{r[0], cents}
	}
	return payments, nil
}

// batches returns a constructor of instances that handle the files of a folder.
func batches(folder string, onEmpty func()) func(topo.Instance) (*Batch, error) {
	return func(topo.Instance) (*Batch, error) { return &Batch{folder, onEmpty}, nil }
}
