package errtop

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/runtime/internal/chain"
)

// exitCrash is the exit code of Settings.Crash, that of a panic.
const exitCrash = 2

// Keeper keeps the top of errors. Its zero value keeps them in memory, with the
// default settings; Open makes one that has a file. All methods may be called by
// several goroutines at the same time.
type Keeper struct {
	shards   [shardsMax]shard
	settings Settings
	disk     disk // nil: in memory
	crashing sync.Mutex

	mu  sync.Mutex // comes before that of a shard
	top *ranking

	dirty    atomic.Bool   // there is what was not written
	wake     chan struct{} // the writer is to look
	stop     chan struct{}
	stopped  chan struct{}
	writing  sync.Mutex // one dump at a time
	failing  bool       // the last dump failed
	closing  sync.Once
	closeErr error // of the dump on Close
}

// Open makes a keeper that begins with what its file holds, and writes it. It
// fails where a person has to act: a setting is wrong, the folder does not exist
// or cannot be written to, what is at the path cannot be read and not be put
// aside either. A disk that is full is none of these.
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

// Record counts an error of an instance, or, where stack is not nil, its panic.
// It is what a pool calls: worker is the number of the goroutine that runs the
// instance, -1 for one of the instance's own; where names what failed, a processor
// for example, for all instances alike; err is the handler's own error, without
// words that differ by instance; stack is as debug.Stack returns it.
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

// reasonOf is what err says; a method Error that panics is a reason as well.
func reasonOf(err error) (reason string) {
	defer func() {
		if cause := recover(); cause != nil {
			reason = fmt.Sprintf("an error of type %T, whose method Error panics", err)
		}
	}()
	_, err = chain.Sort(err) // a chain without end may have a text without end
	return err.Error()
}

// crash ends the process; the first to come prints.
func (k *Keeper) crash(c *cause) {
	k.crashing.Lock()
	fmt.Fprintf(os.Stderr, "errtop: the setting crash ends the process at its first error:\n%s\n", c.text())
	os.Exit(exitCrash)
}

// Catch calls a function and records its error, or its panic, which it returns as
// an error that has a stack and unwraps to what was panicked with, if that is an
// error. Worker tells callers apart that call at the same time; where names what
// is called.
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
		err = call() // who debugs wants the panic as it is
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

// mergeAll adds what the shards hold to the ranking.
func (k *Keeper) mergeAll(now time.Time) {
	for i := range k.shards {
		k.merge(&k.shards[i])
	}
	k.prune(now)
}

// prune removes what is old, which makes room, and then what is too many.
func (k *Keeper) prune(now time.Time) {
	k.ranking().removeOld(now.Add(-k.settings.withDefaults().Keep).UnixMicro())
	k.ranking().trim()
}

func (k *Keeper) merge(s *shard) {
	for _, t := range s.take() {
		k.ranking().add(t.text(), t.count, t.last)
	}
}

// ranking is called with mu held.
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
	k.dirty.Store(false) // before the merge: what comes during it is written next
	err := k.replace(encode(k.Top()))
	if err != nil {
		k.dirty.Store(true)
		k.wakeWriter()
	}
	if err != nil && !k.failing {
		k.settings.log().Warn("errtop: the errors cannot be written, which is tried again", "path", k.settings.Path, "error", err)
	}
	k.failing = err != nil
	return err
}

// write dumps what there is, and then rests for the period.
func (k *Keeper) write() {
	defer close(k.stopped)
	for {
		select {
		case <-k.wake:
		case <-k.stop:
			return
		}
		_ = k.Dump() // which warns, and is tried again
		rest := time.NewTimer(k.settings.DumpEvery)
		select {
		case <-rest.C:
		case <-k.stop:
			rest.Stop()
			return
		}
	}
}

// wakeWriter makes the writer look, which may have been told already.
func (k *Keeper) wakeWriter() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// Close writes what was not written yet. After it the keeper goes on in memory.
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
