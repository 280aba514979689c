package durable

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// Names of the tags that this package gives to its promises.
const (
	tagStep = "topogen:step" // the name of the step that a promise records
	tagFrom = "topogen:from" // of the promise that begins an attempt: the first position that the attempt records
)

// A journal has the records of an execution, by position. Position 1 is the first durable
// call of the function.
//
// The records of attempt 1 have the ids <prefix><position>. When an attempt fails, the
// promise <prefix>~<k> begins attempt k. The attempt sees the records of the attempts
// before it at the positions before tagFrom, and its own records, with the ids
// <prefix><position>~<k>, from there on. The promise <record>!<k> is the timer before
// attempt k at a single step. A journal makes ids with its prefix, and also reads records with the
// former prefix.
type journal struct {
	execution string // its id
	prefix    string
	former    string
	records   map[slot]*protocol.Promise
	retries   map[slot]retryTimer
	begun     []*protocol.Promise // begun[k-2] begins attempt k
	starts    []int32             // starts[k-2] is its tagFrom
}

// A slot is the place of a record.
type slot struct{ position, attempt int32 }

type retryTimer struct {
	attempt int32
	promise *protocol.Promise
}

// attemptsMax bounds the attempts at an execution that a journal reads, which other
// programs could have written.
const attemptsMax = 1_000_000

// newJournal makes the journal of the execution with this id.
func newJournal(id string, records []protocol.Promise) journal {
	j := journal{execution: id, prefix: recordPrefix(id), former: formerPrefix(id), records: make(map[slot]*protocol.Promise, len(records))}
	begun := make(map[int32]*protocol.Promise)
	for i := range records {
		p := &records[i]
		if k, ok := j.attemptBegunBy(p); ok {
			begun[k] = p
		} else {
			j.add(p)
		}
	}
	for k := int32(2); begun[k] != nil; k++ {
		j.begin(begun[k])
	}
	return j
}

// add adds a record. It ignores other promises, for example records of a child.
func (j *journal) add(p *protocol.Promise) {
	s, retry, ok := j.parse(p)
	switch {
	case !ok:
	case retry == 0:
		j.records[s] = p
	case retry > j.retries[s].attempt:
		if j.retries == nil {
			j.retries = make(map[slot]retryTimer)
		}
		j.retries[s] = retryTimer{retry, p}
	}
}

// begin adds the promise that begins the next attempt.
func (j *journal) begin(p *protocol.Promise) {
	from, err := strconv.ParseInt(p.Tags[tagFrom], 10, 32)
	if err != nil || from < 1 {
		from = 1
	}
	j.begun = append(j.begun, p)
	j.starts = append(j.starts, int32(from))
}

// attempt is the number of the current attempt.
func (j *journal) attempt() int { return 1 + len(j.begun) }

// at is the slot that the current attempt sees at a position.
func (j *journal) at(position int) slot {
	s := slot{int32(position), 1}
	for k := len(j.starts) - 1; k >= 0; k-- {
		if j.starts[k] <= s.position {
			s.attempt = int32(k + 2)
			break
		}
	}
	return s
}

// id is the id of the record at a slot.
func (j *journal) id(s slot) string {
	b := make([]byte, 0, len(j.prefix)+16)
	b = strconv.AppendInt(append(b, j.prefix...), int64(s.position), 10)
	if s.attempt > 1 {
		b = strconv.AppendInt(append(b, '~'), int64(s.attempt), 10)
	}
	return string(b)
}

// retryID is the id of the timer before an attempt at the step at a slot.
func (j *journal) retryID(s slot, attempt int) string {
	return fmt.Sprintf("%s!%d", j.id(s), attempt)
}

// attemptID is the id of the promise that begins an attempt.
func (j *journal) attemptID(k int) string { return fmt.Sprintf("%s~%d", j.prefix, k) }

// has reports whether a promise is a record of the execution. The id alone does not say it: the
// execution may have started a call with an id that looks like one of its records.
func (j *journal) has(p *protocol.Promise) bool {
	return p.Tags[protocol.TagParent] == j.execution && !named(p)
}

// place is what follows the prefix in the id of a record.
func (j *journal) place(p *protocol.Promise) (text string, ok bool) {
	if !j.has(p) {
		return "", false
	}
	if text, ok = strings.CutPrefix(p.ID, j.prefix); ok {
		return text, true
	}
	return strings.CutPrefix(p.ID, j.former)
}

// attemptBegunBy is the attempt that a promise begins.
func (j *journal) attemptBegunBy(p *protocol.Promise) (int32, bool) {
	text, ok := j.place(p)
	if !ok || !strings.HasPrefix(text, "~") {
		return 0, false
	}
	k, rest := number(text[1:])
	return k, k >= 2 && k <= attemptsMax && rest == ""
}

// parse returns the slot of a record, and the attempt of a timer before a retry.
func (j *journal) parse(p *protocol.Promise) (s slot, retry int32, ok bool) {
	text, ok := j.place(p)
	if !ok {
		return s, 0, false
	}
	s.attempt = 1
	if s.position, text = number(text); s.position < 1 {
		return s, 0, false
	}
	if strings.HasPrefix(text, "~") {
		if s.attempt, text = number(text[1:]); s.attempt < 2 {
			return s, 0, false
		}
	}
	if strings.HasPrefix(text, "!") {
		if retry, text = number(text[1:]); retry < 2 {
			return s, 0, false
		}
	}
	return s, retry, text == ""
}

// number reads a decimal number without leading zeros. It returns 0 if there is none or
// if it has more than nine digits.
func number(text string) (n int32, rest string) {
	i := 0
	for i < len(text) && '0' <= text[i] && text[i] <= '9' {
		if i == 9 || i == 1 && n == 0 {
			return 0, text
		}
		n = n*10 + int32(text[i]-'0')
		i++
	}
	return n, text[i:]
}
