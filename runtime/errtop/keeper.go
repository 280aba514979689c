package errtop

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/runtime/internal/chain"
)

// exitCrash is the exit code of Settings.Crash, the same as after a panic.
const exitCrash = 2

// Keeper counts errors. Its zero value keeps them in memory, with the default settings;
// Open makes one with a file. All methods are safe for concurrent use.
type Keeper struct {
	shards   [shardsMax]shard
	settings Settings
	disk     disk // nil: no file
	crashing sync.Mutex

	mu  sync.Mutex // is locked before the lock of a shard
	top *ranking

	dirty    atomic.Bool   // there are records that were not written
	wake     chan struct{} // wakes the writer when there are new records
	stop     chan struct{}
	stopped  chan struct{}
	writing  sync.Mutex // held during a dump
	failing  bool       // the last dump failed
	closing  sync.Once
	closeErr error // error of the dump in Close
}

// Open makes a keeper that starts with the records in its file, and writes the file. It
// fails if the user must correct something: a setting is invalid, the folder does not
// exist or cannot be written to, or the existing file can neither be read nor renamed. It
// does not fail if the disk is full.
func Open(s Settings) (*Keeper, error) { return open(s, osDisk{}) }

func open(s Settings, d disk) (*Keeper, error) {
	s, err := s.checked()
	if err != nil {
		return nil, err
	}
	k := &Keeper{settings: s}
	if s.Path == "" {
		return k, nil
	}
	k.disk = d
	if err := k.restore(time.Now()); err != nil {
		return nil, err
	}
	k.wake, k.stop, k.stopped = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	go k.write()
	return k, nil
}

// Record counts an error of an instance or, if stack is not nil, its panic. A pool calls
// it. worker is the number of the worker that runs the instance, or -1 if a goroutine of
// the instance calls Record. where names what failed, such as a processor, and must be
// the same for all instances. err is the handler's own error, without words that differ
// by instance. stack is the output of debug.Stack.
func (k *Keeper) Record(worker int, where string, instance int, err error, stack []byte) {
	if err == nil {
		return
	}
	c := cause{where: cut(where, whereMax), reason: cut(reasonOf(err), reasonMax)}
	if stack != nil {
		c.trace = cut(traceOfPanic(stack), textMax)
	} else {
		copy(c.pcs[:], StackOf(err))
	}
	k.record(worker, instance, &c)
}

func (k *Keeper) record(worker, instance int, c *cause) {
	if k.settings.Crash {
		k.crash(c)
	}
	if worker < 0 {
		worker = instance
	}
	s := &k.shards[uint(worker)%shardsMax]
	for now := time.Now().UnixMicro(); !s.add(c, now); {
		k.mu.Lock()
		k.merge(s)
		k.prune(time.Now())
		k.mu.Unlock()
	}
	if !k.dirty.Load() && k.dirty.CompareAndSwap(false, true) {
		k.wakeWriter()
	}
}

// reasonOf returns the text of err, or a replacement if its method Error panics.
func reasonOf(err error) (reason string) {
	defer func() {
		if cause := recover(); cause != nil {
			reason = fmt.Sprintf("an error of type %T, whose method Error panics", err)
		}
	}()
	_, err = chain.Sort(err) // an endless chain of errors may have an endless text
	return err.Error()
}

// crash ends the process. The first caller prints its error.
func (k *Keeper) crash(c *cause) {
	k.crashing.Lock()
	fmt.Fprintf(os.Stderr, "errtop: the process ends at its first error, because the setting crash is on:\n%s\n", c.text())
	os.Exit(exitCrash)
}

// Catch calls a function and records its error or panic. A panic is returned as an error
// with a stack, which unwraps to the value of the panic if that is an error. worker
// identifies callers that run concurrently; where names what is called.
func (k *Keeper) Catch(worker int, where string, call func() error) (err error) {
	if !k.settings.Crash {
		returned := false
		defer func() {
			if !returned {
				err = panicError(recover())
				k.Record(worker, where, worker, err, nil)
			}
		}()
		err = call()
		returned = true
	} else {
		err = call() // for debugging, the panic is not recovered
	}
	k.Record(worker, where, worker, err, nil)
	return err
}

// Top returns all records, the most frequent first.
func (k *Keeper) Top() []Entry {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.mergeAll(time.Now())
	return k.top.entries()
}

// mergeAll adds the counts of all shards to the ranking.
func (k *Keeper) mergeAll(now time.Time) {
	for i := range k.shards {
		k.merge(&k.shards[i])
	}
	k.prune(now)
}

// prune removes old records first, which makes room, and then excess records.
func (k *Keeper) prune(now time.Time) {
	k.ranking().removeOld(now.Add(-k.settings.withDefaults().Keep).UnixMicro())
	k.ranking().trim()
}

func (k *Keeper) merge(s *shard) {
	for _, t := range s.take() {
		k.ranking().add(t.text(), t.count, t.last)
	}
}

// ranking returns the ranking. The caller holds mu.
func (k *Keeper) ranking() *ranking {
	if k.top == nil {
		k.top = newRanking(k.settings.withDefaults().Top)
	}
	return k.top
}

// Dump writes the file now. Without a file it does nothing.
func (k *Keeper) Dump() error {
	if k.disk == nil {
		return nil
	}
	k.writing.Lock()
	defer k.writing.Unlock()
	k.dirty.Store(false) // before the merge: records added during the merge are written by the next dump
	err := k.replace(encode(k.Top()))
	if err != nil {
		k.dirty.Store(true)
		k.wakeWriter()
	}
	if err != nil && !k.failing {
		k.settings.log().Warn("errtop: cannot write the errors, will try again", "path", k.settings.Path, "error", err)
	}
	k.failing = err != nil
	return err
}

// write writes the file when there are new records, and then pauses for the period.
func (k *Keeper) write() {
	defer close(k.stopped)
	for {
		select {
		case <-k.wake:
		case <-k.stop:
			return
		}
		_ = k.Dump() // logs a warning and is tried again
		pause := time.NewTimer(k.settings.DumpEvery)
		select {
		case <-pause.C:
		case <-k.stop:
			pause.Stop()
			return
		}
	}
}

// wakeWriter wakes the writer, unless it has been woken already.
func (k *Keeper) wakeWriter() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// Close writes records that were not written yet. After it the keeper works in memory.
// Closing again returns the same error.
func (k *Keeper) Close() error {
	k.closing.Do(func() {
		if k.disk == nil {
			return
		}
		close(k.stop)
		<-k.stopped
		if k.dirty.Load() {
			k.closeErr = k.Dump()
		}
	})
	return k.closeErr
}
