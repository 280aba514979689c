// Package clusterprocesses runs nodes in processes of their own. Each instance writes what
// it handles to a file, so the test can compare the effects with the counters, also those of
// processes that were killed.
package clusterprocesses

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/topogen/topogen/runtime/topo"
)

type (
	// Item is message N of a source, which is delivered at least once.
	Item struct {
		Source, N int
		Key       string
	}
	// Note is message N of a source, which is delivered at most once.
	Note struct {
		Source, N int
		Key       string
	}
	// Question is message N of a source, which needs an answer.
	Question struct {
		Source, N int
		Key       string
	}
	// Answer is the reply to question N of a source. If the process of the source was
	// killed, the instance in the next process gets it.
	Answer struct{ Source, N int }
)

const (
	// VariableDir names the folder for the files. If it has a file named finish, the
	// sources are done.
	VariableDir = "CLUSTERPROCESSES_DIR"
	// VariableStart is the number of this start of the process. The sources of each start
	// have numbers of their own, because they count their messages from 1.
	VariableStart = "CLUSTERPROCESSES_START"
	// VariablePause is the time that each item takes at a worker of this process.
	VariablePause = "CLUSTERPROCESSES_PAUSE"
)

// Sources bounds the sources of one start.
const Sources = 100

// record is the file of an instance. It has every effect, however the process ends.
type record struct{ file *os.File }

func newRecord(in topo.Instance) (*record, error) {
	name := fmt.Sprintf("%s-%d-%s-%d", in.Processor, in.Index, os.Getenv("TOPOGEN_NODE"), os.Getpid())
	file, err := os.Create(filepath.Join(os.Getenv(VariableDir), name))
	if err != nil {
		return nil, err
	}
	return &record{file}, nil
}

func (r *record) add(source, n int) error {
	_, err := fmt.Fprintln(r.file, source, n)
	return err
}

// Source sends items and questions until the file finish exists.
type Source struct {
	index, n int
	answers  *record
}

// finished reports whether the sources are done.
func finished() bool {
	_, err := os.Stat(filepath.Join(os.Getenv(VariableDir), "finish"))
	return err == nil
}

// NewSource makes a source.
func NewSource(in topo.Instance) (*Source, error) {
	answers, err := newRecord(in)
	start, _ := strconv.Atoi(os.Getenv(VariableStart)) // 0 for the first start
	return &Source{index: in.Index + Sources*start, answers: answers}, err
}

// Ping sends an item, and sometimes a note and a question.
func (s *Source) Ping(out *SourceSender) error {
	if s.n%128 == 0 {
		if finished() {
			return topo.Done
		}
	}
	s.n++
	key := fmt.Sprint(s.n % 97)
	out.SendItem(Item{Source: s.index, N: s.n, Key: key})
	if s.n%4 == 0 {
		out.SendNote(Note{Source: s.index, N: s.n, Key: key})
	}
	if s.n%10 == 0 {
		out.SendQuestion(Question{Source: s.index, N: s.n, Key: key})
	}
	return nil
}

// ReceiveAnswer takes an answer.
func (s *Source) ReceiveAnswer(m Answer) error { return s.answers.add(m.Source, m.N) }

// Finish ends the file.
func (s *Source) Finish() error { return s.answers.file.Close() }

// Worker takes items.
type Worker struct {
	items *record
	pause time.Duration
	store *counters // nil: none
}

// NewWorker makes a worker.
func NewWorker(in topo.Instance) (*Worker, error) {
	items, err := newRecord(in)
	if err != nil {
		return nil, err
	}
	store, err := newCounters(in)
	pause, _ := time.ParseDuration(os.Getenv(VariablePause)) // without it: 0
	return &Worker{items, pause, store}, err
}

// ReceiveItem takes an item.
func (w *Worker) ReceiveItem(m Item) error {
	if w.pause > 0 {
		<-time.After(w.pause)
		if m.N%128 == 0 && finished() { // what is queued need not be slow
			w.pause = 0
		}
	}
	if w.store != nil {
		if err := w.store.add(m.Key); err != nil {
			return err
		}
	}
	return w.items.add(m.Source, m.N)
}

// Finish ends the file.
func (w *Worker) Finish() error { return w.items.file.Close() }

// Reader takes notes.
type Reader struct{ notes *record }

// NewReader makes a reader.
func NewReader(in topo.Instance) (*Reader, error) {
	notes, err := newRecord(in)
	return &Reader{notes}, err
}

// ReceiveNote takes a note.
func (r *Reader) ReceiveNote(m Note) error { return r.notes.add(m.Source, m.N) }

// Finish ends the file.
func (r *Reader) Finish() error { return r.notes.file.Close() }

// Ledger answers questions.
type Ledger struct{ questions *record }

// NewLedger makes a ledger.
func NewLedger(in topo.Instance) (*Ledger, error) {
	questions, err := newRecord(in)
	return &Ledger{questions}, err
}

// ReceiveQuestion answers a question.
func (l *Ledger) ReceiveQuestion(m Question) (Answer, error) {
	return Answer{m.Source, m.N}, l.questions.add(m.Source, m.N)
}

// Finish ends the file.
func (l *Ledger) Finish() error { return l.questions.file.Close() }
