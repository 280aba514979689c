package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/store"
)

// DurableCheck checks a store of durable promises that is not in use.
type DurableCheck struct {
	Dir  string
	JSON bool
}

func newDurableCheck(chosen *command) *cobra.Command {
	c := DurableCheck{}
	cmd := &cobra.Command{
		Use:   "check STORE",
		Short: "Check the file and the invariants of a store",
		Long: `Check the store in the folder STORE: each page and each checksum of its file, and then the
invariants of the protocol, for example that every pending task has a timeout. No server
may have the store open; if it must run on, restore a backup into another folder and check
that folder. The command only reads the folder, so the folder may belong to another user or
be mounted for reading.

A power failure does not damage a store. If the disk cannot read the file, the command
exits with 3 and the error of the disk, because it is unknown whether the store is intact.

The command exits with 1 if it has found damage or a violation, and prints one per line.`,
		Example: `  topoctl durable check ./promises
  topoctl durable check ./promises --json | jq '.violations[].id'`,
		Args: oneOf("the folder of the store"),
		RunE: func(_ *cobra.Command, args []string) error {
			c.Dir = args[0]
			*chosen = c
			return nil
		},
	}
	addJSON(cmd, &c.JSON)
	return cmd
}

// checkReport is the outcome of a check in JSON.
type checkReport struct {
	ID         string            `json:"id"`
	Bytes      int64             `json:"bytes"`
	Commits    uint64            `json:"commits"`
	Records    map[string]uint64 `json:"records"` // by table; tables without records are absent
	Damage     []string          `json:"damage"`
	Violations []violationObject `json:"violations"` // null: not checked, because the file is damaged
}

type violationObject struct {
	Invariant string `json:"invariant"`
	ID        string `json:"id"`
	Detail    string `json:"detail"`
}

func (c DurableCheck) run(_ context.Context, s Streams) error {
	file, err := store.Verify(c.Dir)
	if err != nil {
		return c.explain(err)
	}
	r := checkReport{ID: file.ID, Bytes: file.Bytes, Commits: file.Commits, Records: map[string]uint64{}, Damage: []string{}}
	var records uint64
	for t, n := range file.Records {
		records += n
		if n > 0 {
			r.Records[core.Table(t).String()] = n
		}
	}
	for _, d := range file.Damage {
		r.Damage = append(r.Damage, d.Error())
	}
	if len(file.Damage) == 0 {
		if r.Violations, err = c.violations(records, s.Err); err != nil {
			return c.explain(err)
		}
	}
	if c.JSON {
		err = printJSON(s.Out, r)
	} else {
		err = r.print(s.Out)
	}
	switch {
	case err != nil:
		return err
	case len(r.Damage) > 0:
		return negative(fmt.Sprintf("%s is damaged. No server opens it. Restore a backup with \"topoctl durable restore FILE --store DIR --keep-old\"", c.Dir))
	case len(r.Violations) > 0:
		return negative(fmt.Sprintf("%s has %d violations, which are a mistake of the server: please report them", c.Dir, len(r.Violations)))
	}
	return nil
}

// violations checks the invariants, and prints its progress.
func (c *DurableCheck) violations(records uint64, progress io.Writer) ([]violationObject, error) {
	disk, err := store.OpenReadOnly(c.Dir, store.Options{TrustFile: true}) // Verify has just read it
	if err != nil {
		return nil, err
	}
	list := []violationObject{}
	err = disk.View(func(tx store.Tx) error {
		now, err := engine.LatestTime(tx) // the zero time suits a store without a commit
		if err != nil {
			return err
		}
		kv := &countingKV{KV: tx}
		stop := kv.report(records, progress)
		found := core.Check(kv, now)
		stop()
		for _, v := range found {
			list = append(list, violationObject{v.Invariant, v.ID, v.Detail})
		}
		return tx.Err()
	})
	return list, errors.Join(err, disk.Close())
}

// countingKV counts the records that are read.
type countingKV struct {
	core.KV
	read atomic.Uint64
}

func (kv *countingKV) Ascend(t core.Table, from []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(k, v []byte) bool) {
		for k, v := range kv.KV.Ascend(t, from) {
			kv.read.Add(1)
			if !yield(k, v) {
				return
			}
		}
	}
}

// progressInterval is the time between two lines of progress. A check of fewer than some
// million records prints none.
const progressInterval = 5 * time.Second

// report prints how many records were read, from time to time, until stop is called.
func (kv *countingKV) report(records uint64, w io.Writer) (stop func()) {
	ticker := time.NewTicker(progressInterval)
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-ticker.C:
				fmt.Fprintf(w, "topoctl: read %d records; the store has %d\n", kv.read.Load(), records)
			case <-ended:
				return
			}
		}
	}()
	return func() {
		ticker.Stop()
		close(ended)
		<-done
	}
}

func (r *checkReport) print(out io.Writer) error {
	if len(r.Damage)+len(r.Violations) == 0 {
		return fields{
			{"store", r.ID},
			{"file", fmt.Sprintf("%d bytes, commit %d", r.Bytes, r.Commits)},
			{"promises", number(r.Records[core.Promises.String()])},
			{"tasks", number(r.Records[core.Tasks.String()])},
			{"schedules", number(r.Records[core.Schedules.String()])},
			{"violations", "0"},
		}.print(out)
	}
	w := bufio.NewWriter(out)
	for _, d := range r.Damage {
		fmt.Fprintln(w, oneLine(d))
	}
	for _, v := range r.Violations {
		fmt.Fprintf(w, "%s: %s: %s\n", v.Invariant, oneLine(v.ID), oneLine(v.Detail))
	}
	return w.Flush()
}

// explain says what to do if a store cannot be checked.
func (c *DurableCheck) explain(err error) error {
	advice := ""
	switch {
	case errors.Is(err, store.ErrInUse):
		advice = "\nStop the server, or restore a backup into another folder and check that one."
	case errors.Is(err, fs.ErrNotExist):
		advice = "\nName the folder of a store: the one of \"topoctl durable serve --store\", or of the section durable of a topology."
	}
	return fmt.Errorf("cannot check %s: %s%s", oneLine(c.Dir), oneLine(err.Error()), advice)
}
