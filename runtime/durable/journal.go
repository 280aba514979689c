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
// The records of attempt 1 have the ids <execution>.<position>. When an attempt fails, the
// promise <execution>.~<k> begins attempt k. The attempt sees the records of the attempts
// before it at the positions before tagFrom, and its own records, with the ids
// <execution>.<position>~<k>, from there on. The promise <record>!<k> is the timer before
// attempt k at a single step.
type journal struct {
	prefix  string // of the ids of all records
	records map[slot]*protocol.Promise
	retries map[slot]retryTimer
	begun   []*protocol.Promise // begun[k-2] begins attempt k
	starts  []int32             // starts[k-2] is its tagFrom
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
	// The SDKs separate the id of a root by a colon and the rest by dots. A root with
	// a colon comes from a topology.
	separator := "."
	if !strings.Contains(id, ":") {
		separator = ":"
	}
	j := journal{prefix: id + separator, records: make(map[slot]*protocol.Promise, len(records))}
	begun := make(map[int32]*protocol.Promise)
	for i := range records {
		p := &records[i]
		if k, ok := j.attemptBegunBy(p.ID); ok {
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
	s, retry, ok := j.parse(p.ID)
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

// attemptBegunBy is the attempt that the promise with this id begins.
func (j *journal) attemptBegunBy(id string) (int32, bool) {
	text, ok := strings.CutPrefix(id, j.prefix)
	if !ok || !strings.HasPrefix(text, "~") {
		return 0, false
	}
	k, rest := number(text[1:])
	return k, k >= 2 && k <= attemptsMax && rest == ""
}

// parse returns the slot of a record, and the attempt of a timer before a retry.
func (j *journal) parse(id string) (s slot, retry int32, ok bool) {
	if !strings.HasPrefix(id, j.prefix) {
		return s, 0, false
	}
	text := id[len(j.prefix):]
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
