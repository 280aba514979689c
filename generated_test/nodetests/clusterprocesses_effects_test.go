package nodetests_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/topogen/topogen/generated_test/clusterprocesses"
	"github.com/topogen/topogen/runtime/pool"
)

// capacity is that of the edges.
const capacity = 1024

// flow is an edge whose messages the test compares with their effects.
type flow struct {
	edge       clusterprocesses.EdgeIndex
	to         string // processor whose instances record the messages
	atMostOnce bool
	replies    bool // the file of a source has the replies of all ledgers, without an order
}

var flows = []flow{
	{edge: clusterprocesses.EdgeSourceWorkerItem, to: "worker"},
	{edge: clusterprocesses.EdgeSourceReaderNote, to: "reader", atMostOnce: true},
	{edge: clusterprocesses.EdgeSourceLedgerQuestion, to: "ledger"},
	{edge: clusterprocesses.EdgeLedgerSourceAnswerForQuestion, to: "source", replies: true},
}

// id is message n of a source.
type id struct{ source, n int }

// effects are what the instances of a processor have recorded.
type effects struct {
	count   map[id]int
	files   map[id][]string
	sources map[int]int // highest message by source
}

// figures returns the figures of a process after its end.
func (c *fleet) figures(p *fleetProcess) (edges []pool.EdgeFigures) {
	c.t.Helper()
	b, err := os.ReadFile(c.path(fmt.Sprint("figures-", p.start)))
	if err == nil {
		err = json.Unmarshal(b, &edges)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return edges
}

// sum adds up the figures of an edge over the processes that have ended in order.
func (c *fleet) sum(edge clusterprocesses.EdgeIndex) (sum pool.EdgeFigures) {
	c.t.Helper()
	for _, p := range c.all {
		if p.killed {
			continue
		}
		f := c.figures(p)[edge]
		if f.Sent != f.Received+f.Dropped+uint64(f.Len) {
			c.t.Errorf("%s, start %d: the figures of edge %d do not add up: %+v", nodeName(p.node), p.start, edge, f)
		}
		sum.Sent += f.Sent
		sum.Received += f.Received
		sum.Dropped += f.Dropped
		sum.Len += f.Len
		sum.Waiting += f.Waiting
	}
	return sum
}

// effects reads what the instances of a processor have recorded. The messages of one sender
// to one receiver must be in order, also after they were sent again.
func (c *fleet) effects(f flow) effects {
	c.t.Helper()
	found, _ := filepath.Glob(c.path(f.to + "-*"))
	e := effects{count: map[id]int{}, files: map[id][]string{}, sources: map[int]int{}}
	for _, path := range found {
		file, err := os.Open(path)
		if err != nil {
			c.t.Fatal(err)
		}
		defer file.Close()
		last := map[int]int{}
		for lines := bufio.NewScanner(file); lines.Scan(); {
			var m id
			source, n, _ := strings.Cut(lines.Text(), " ")
			m.source, err = strconv.Atoi(source)
			if err == nil {
				m.n, err = strconv.Atoi(n)
			}
			if err != nil {
				c.t.Fatalf("%s: %q: %v", path, lines.Text(), err)
			}
			if m.n <= last[m.source] && !f.replies {
				c.t.Errorf("%s: message %d of source %d comes after %d", filepath.Base(path), m.n, m.source, last[m.source])
			}
			last[m.source] = m.n
			e.count[m]++
			e.files[m] = append(e.files[m], filepath.Base(path))
			e.sources[m.source] = max(e.sources[m.source], m.n)
		}
	}
	return e
}

// killedStarts are the numbers of the processes that the test has killed.
func (c *fleet) killedStarts() (starts map[int]bool) {
	starts = map[int]bool{}
	for _, p := range c.all {
		starts[p.start] = p.killed
	}
	return starts
}

// checkEnds checks that all processes that were not killed have ended in order.
func (c *fleet) checkEnds() {
	c.t.Helper()
	for _, p := range c.all {
		if err := c.ended(p); err != nil && !p.killed {
			c.t.Errorf("%s: %v", nodeName(p.node), err)
		}
	}
	if c.t.Failed() {
		c.t.FailNow()
	}
}

// checkAll checks that nothing was lost: the counters of all processes and the effects
// agree. After kills, it compares the messages of the processes that live. A message of
// these that is delivered at least once has an effect. It has two only if a process has
// handled it and was killed before it had confirmed it, and a pair of instances has at most
// as many such messages as its capacity. A message that is delivered at most once never has
// two effects, and a message without an effect was counted as dropped. A message with an
// effect may be counted as dropped too, if its process was killed before it had confirmed it.
func (c *fleet) checkAll() {
	c.t.Helper()
	c.checkEnds()
	killed := c.killedStarts()
	for _, f := range flows {
		e, figures := c.effects(f), c.sum(f.edge)
		alive, twice, of := uint64(0), map[string]int{}, uint64(0)
		for m, n := range e.count {
			if n > 1 && f.atMostOnce {
				c.t.Errorf("%s: message %d of source %d was handled twice: %v", f.to, m.n, m.source, e.files[m])
			}
			if n > 1 && !f.replies && !c.mayRepeat(e.files[m]) {
				c.t.Errorf("%s: message %d of source %d was handled twice although its first process was not killed: %v", f.to, m.n, m.source, e.files[m])
			}
			if n > 1 {
				of++
				twice[fmt.Sprint(m.source, e.files[m])]++
			}
			if !killed[m.source/clusterprocesses.Sources] {
				alive++
			}
		}
		for pair, n := range twice {
			if n > capacity {
				c.t.Errorf("%s: %d messages of the pair %s were handled twice, and its capacity is %d", f.to, n, pair, capacity)
			}
		}
		c.t.Logf("%s: %d messages of living sources were handled, %d messages twice, figures %+v", f.to, alive, of, figures)
		switch {
		case figures.Len != 0 || figures.Waiting != 0 || alive == 0:
			c.t.Errorf("%s: %d effects, but the figures are %+v", f.to, alive, figures)
		case f.replies && len(c.killed()) > 0: // see checkAnswers
		case f.atMostOnce:
			if alive < figures.Received || alive > figures.Sent || len(c.killed()) == 0 && figures.Dropped != 0 {
				c.t.Errorf("%s: %d effects, but the figures are %+v", f.to, alive, figures)
			}
		case figures.Dropped != 0 || figures.Sent != figures.Received || figures.Received != alive:
			c.t.Errorf("%s: %d effects, but the figures are %+v", f.to, alive, figures)
		}
	}
	c.checkAnswers(c.effects(flows[3]), c.effects(flows[2]))
}

func (c *fleet) killed() (list []*fleetProcess) {
	for _, p := range c.all {
		if p.killed {
			list = append(list, p)
		}
	}
	return list
}

// mayRepeat reports whether the processes that have handled a message were killed, except
// for the last one.
func (c *fleet) mayRepeat(files []string) bool {
	alive := 0
	for _, file := range files {
		killed := false
		for _, p := range c.killed() {
			killed = killed || strings.HasSuffix(file, fmt.Sprintf("-%s-%d", nodeName(p.node), p.cmd.Process.Pid))
		}
		if !killed {
			alive++
		}
	}
	return alive <= 1
}

// checkAnswers checks that a process gets at most one answer to a question for each time that
// the question was handled. An answer is a message of the ledger: it is lost with the process
// of the ledger, and handled again by the next process of the source.
func (c *fleet) checkAnswers(answers, questions effects) {
	c.t.Helper()
	for m := range answers.count {
		times := map[string]int{}
		for _, file := range answers.files[m] {
			if times[file]++; times[file] > questions.count[m] {
				c.t.Errorf("question %d of source %d was handled %d times and has %d answers in %s", m.n, m.source, questions.count[m], times[file], file)
			}
		}
	}
}
