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

// Batch sends the payments of one file that waits in a folder. There is a new
// Batch for each file, so nothing is left over from one to the next.
type Batch struct {
	folder  string
	onEmpty func() // is called where no file waits; may be nil
}

// Serve handles the first file that waits. That it returns nil is the end of the
// batch, and not of the work: the file says restart: always. An error is a failure,
// after which there is a new instance, too.
func (b *Batch) Serve(_ context.Context, out *BatchSender) error {
	files, err := filepath.Glob(filepath.Join(b.folder, "*.csv")) // in order
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
		// Out of the way: else the next instance would fail of it as well.
		if err := os.Rename(files[0], files[0]+".bad"); err != nil {
			return err
		}
		return err
	}
	for _, p := range payments {
		if err := out.SendPayment(p); err != nil {
			return err // topo.ErrStopping: the file waits for the next program
		}
	}
	// Between here and there the process may die: then the file is handled twice.
	if err := os.Rename(files[0], files[0]+".done"); err != nil {
		return err
	}
	return out.SendBooked(Booked{filepath.Base(files[0])})
}

// read reads all of a file before anything is sent, so that one with a fault sends
// nothing.
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

// batches makes instances that handle the files of a folder.
func batches(folder string, onEmpty func()) func(topo.Instance) (*Batch, error) {
	return func(topo.Instance) (*Batch, error) { return &Batch{folder, onEmpty}, nil }
}
