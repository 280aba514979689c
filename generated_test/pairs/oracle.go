package pairs

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/topogen/topogen/runtime/cluster"
	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/supervise"
)

// copyOf identifies a copy of a message. A message to several instances has a copy for each.
type copyOf struct {
	edge         string
	id, instance int
}

// copyEvents counts the events of a copy.
type copyEvents struct{ began, done, letters int }

// examination compares the ledger of a run with the figures of the runtime.
type examination struct {
	Case
	run      Run
	events   []Event
	figures  pool.Snapshot
	lost     map[string]uint64 // by receiver: messages that an instance of another node has not handled because it was given up
	loses    bool              // a process has ended with queued messages, which are lost
	err      error             // of Run
	copies   map[copyOf]*copyEvents
	accepted map[string]int // by edge: number of copies that were accepted
	unsure   map[string]int // by edge: number of copies that may have been accepted
	problems []string
	tally    map[message]map[Kind]int // of the messages along durable edges
}

func examine(c Case, r Run, events []Event, e result) []string {
	x := &examination{
		Case: c, tally: c.tally(events), run: r, events: withoutRepetitions(events), figures: e.figures, err: e.err,
		copies: make(map[copyOf]*copyEvents), accepted: make(map[string]int), unsure: make(map[string]int),
	}
	if e.stopping > c.stopsWithin() {
		x.problem("Run has returned %v after the end of its context, want at most %v", e.stopping, c.stopsWithin())
	}
	x.count()
	x.ends()
	for _, e := range x.figures.Edges {
		x.edge(e)
	}
	for _, p := range x.figures.Processors {
		x.processor(p)
	}
	x.outcomes()
	x.order()
	x.result()
	x.lifecycles()
	return x.problems
}

func (x *examination) problem(format string, args ...any) {
	x.problems = append(x.problems, fmt.Sprintf(format, args...))
}

// isWhole reports whether the topology has run to its end, so that no message is left. This
// includes a run in which an instance of the processor that fails was given up. If only other instances were given up, the
// failure ended Run, and the end of Run ended their sends along durable edges.
func (x *examination) isWhole() bool {
	return x.err == nil || errors.Is(x.err, pool.ErrGaveUp) && x.placeGaveUp() && !errors.Is(x.err, pool.ErrDrainTimeout) && !errors.Is(x.err, supervise.ErrIntensity)
}

// placeGaveUp reports whether an instance of the processor that fails was given up.
func (x *examination) placeGaveUp() bool {
	return slices.ContainsFunc(x.figures.Processors, func(p pool.ProcessorFigures) bool {
		return p.Name == x.run.Place && p.Faults != nil && p.Faults.GaveUp > 0
	})
}

// count counts the events of each copy.
func (x *examination) count() {
	discarded := x.discarded()
	for _, e := range x.events {
		c := copyOf{e.Where, e.ID, e.Instance}
		if x.isDurable(e.Where) && (e.Kind == sent || e.Kind == unsure) {
			continue // a message with an id is sent twice, and one of a durable function with each replay
		}
		if e.Kind == unsure {
			x.unsure[e.Where] += x.copiesOf(e.Where)
		}
		if e.Kind == sent {
			if !discarded[e.Where][e.ID] {
				x.accepted[e.Where] += x.copiesOf(e.Where)
			}
			continue
		}
		if e.Kind != began && e.Kind != done && e.Kind != letter {
			continue
		}
		if x.copies[c] == nil {
			x.copies[c] = new(copyEvents)
		}
		switch e.Kind {
		case began:
			x.copies[c].began++
		case done:
			x.copies[c].done++
		case letter:
			x.copies[c].letters++
		}
	}
}

// sendsOf returns how often a message was sent: with a crash, the next process may call the handler that
// sends it again.
func (x *examination) sendsOf(c copyOf) (n int) {
	if x.run.Fault != Crash {
		return 1
	}
	for _, e := range x.events {
		if e.Kind == sent && e.Where == c.edge && e.ID == c.id {
			n++
		}
	}
	return max(1, n)
}

// discarded finds the messages that a process has sent during a call that did not succeed. The
// runtime discards these messages.
func (x *examination) discarded() map[string]map[int]bool {
	all := make(map[string]map[int]bool)
	pending := make(map[string][]Event) // by process and processor: the messages that the current call has sent
	for _, e := range x.events {
		switch e.Kind {
		case sent:
			if from, _, _ := strings.Cut(e.Where, "."); x.isIsolated(from) {
				key := fmt.Sprint(e.PID, from)
				pending[key] = append(pending[key], e)
			}
		case done:
			delete(pending, fmt.Sprint(e.PID, receiver(e.Where)))
		case began:
			key := fmt.Sprint(e.PID, receiver(e.Where))
			discard(all, pending[key])
			delete(pending, key)
		}
	}
	for _, list := range pending {
		discard(all, list)
	}
	return all
}

func discard(all map[string]map[int]bool, list []Event) {
	for _, e := range list {
		if all[e.Where] == nil {
			all[e.Where] = make(map[int]bool)
		}
		all[e.Where][e.ID] = true
	}
}

// receiver returns the processor that handles the messages of an edge.
func receiver(edge string) string {
	switch edge {
	case "work.Out":
		return "sink"
	case "ledger.LedgerApplied":
		return "sink"
	case "work.LedgerProposal", addedEdge:
		return "ledger"
	case "work.Rep":
		return "feed"
	case "client.Job":
		return "desk"
	case "desk.Copy":
		return "sink"
	}
	return "work"
}

func (x *examination) isIsolated(processor string) bool { return x.Options[processor] == "process" }

// copiesOf returns the number of copies of a message along an edge.
func (x *examination) copiesOf(edge string) int {
	if to := receiver(edge); x.goesEverywhere(edge) {
		return x.instances(to) + 1 // all other nodes together count as one receiver
	}
	if edge != "feed.One" && edge != "feed.Two" && edge != "other.Two" {
		return 1
	}
	switch x.Options["route"] {
	case "broadcast":
		return x.instances("work")
	case "range":
		return 2
	}
	return 1
}

func (x *examination) instances(processor string) int {
	for _, p := range x.figures.Processors {
		if p.Name == processor {
			return len(p.Instances)
		}
	}
	return 0
}

// ends checks that no copy has two ends.
func (x *examination) ends() {
	for c, n := range x.copies {
		if n.done+n.letters > x.handledMost(c.edge)*x.sendsOf(c) && !x.isDurable(c.edge) {
			x.problem("%s %d at instance %d was handled %d times, and was %d times a dead letter", c.edge, c.id, c.instance, n.done, n.letters)
		}
	}
	for _, e := range x.events {
		if e.Kind == changed {
			x.problem("%s %d at instance %d was changed by another attempt", e.Where, e.ID, e.Instance)
		}
		if e.Kind == replied {
			for i := range instancesMax {
				if n := x.copies[copyOf{e.Where, e.ID, i}]; n != nil && n.done == 0 {
					x.problem("%s %d has a reply and was not handled", e.Where, e.ID)
				}
			}
		}
	}
}

// edge compares the figures of an edge with the ledger.
func (x *examination) edge(e pool.EdgeFigures) {
	name := e.From + "." + e.Message
	if plan.recovers && name == "work.LedgerProposal" {
		return // the ledger does not have the updates
	}
	if e.From == "" {
		name = "timer." + e.Message
	}
	if e.Sent != e.Received+e.Dropped+uint64(e.Len) {
		x.problem("%s: %d sent, but %d received, %d dropped and %d queued", name, e.Sent, e.Received, e.Dropped, e.Len)
	}
	if x.isDurable(name) {
		x.durableEdge(name, e)
		return
	}
	if x.isWhole() && e.Len != 0 && (e.From != "ledger" || x.Recovered == nil) { // a log may still be applied when the receivers of its events have finished
		x.problem("%s: %d are queued at the end", name, e.Len)
	}
	if e.Dropped > 0 && x.isWhole() && x.neverDrops(e) {
		x.problem("%s: %d are dropped", name, e.Dropped)
	}
	if n := x.accepted[name]; x.sendsAreRecorded(name) && (e.Sent < uint64(n) || e.Sent > uint64(n+x.unsure[name])) {
		x.problem("%s: the ledger has %d accepted copies, and the figures %d", name, n, e.Sent)
	}
	if e.Message == "DeadLetter" || !x.isWhole() || e.Message == "LedgerUpcoming" || e.To == "ledger" && e.Message != "LedgerProposal" { // only proposals are always applied
		return
	}
	begun := 0
	for c, n := range x.copies {
		if c.edge == name && (n.began > 0 || n.letters > 0) {
			begun++
		}
	}
	if uint64(begun) != e.Received && !(e.To == "ledger" && x.mayNotLead()) {
		x.problem("%s: the ledger has %d copies that were given to a handler, and the figures %d", name, begun, e.Received)
	}
}

// durableEdge compares the figures of a durable edge with the ledger. The two runs are compared
// with the store elsewhere.
func (x *examination) durableEdge(name string, e pool.EdgeFigures) {
	var known, accepted, ended uint64
	for m, n := range x.tally {
		if m.edge != name {
			continue
		}
		known++
		if n[began] > 0 || n[sent] > 0 && !plan.Next { // a replay may find that the message was handled in the first run
			accepted++
		}
		if n[done]+n[letter] > 0 {
			ended++
		}
	}
	if e.Sent < accepted || e.Sent > known && x.isWhole() && !x.run.Stop { // a stop ends a durable function within its send
		x.problem("%s: the ledger has %d accepted messages of %d, and the figures %d", name, accepted, known, e.Sent)
	}
	if e.Received < ended && !x.run.Stop && x.isWhole() {
		x.problem("%s: %d messages have ended, and the figures say that %d were handled", name, ended, e.Received)
	}
}

// neverDrops reports whether no message of the edge may be dropped: its policy does not drop messages,
// and no instance was given up.
func (x *examination) neverDrops(e pool.EdgeFigures) bool {
	return e.From != "" && x.policy(e) != "drop" && !x.gaveUp()
}

func (x *examination) gaveUp() bool { return x.figures.Faults != nil && x.figures.Faults.GaveUp > 0 }

// policy returns the first word of full: for an edge, which is block, fail or drop.
func (x *examination) policy(e pool.EdgeFigures) string {
	policy := ""
	switch {
	case e.From == "feed" || e.From == "other":
		policy = x.Options["full"]
	case e.Message == "Out":
		policy = x.Options["out"]
	}
	policy, _, _ = strings.Cut(policy, "-")
	return policy
}

// sendsAreRecorded reports whether the ledger has all sends along an edge.
func (x *examination) sendsAreRecorded(edge string) bool {
	from, message, _ := strings.Cut(edge, ".")
	return from != "timer" && from != "ledger" && message != "Rep" && message != "DeadLetter" && (!x.isIsolated(from) || x.isWhole())
}

// processor compares the failure figures of a processor with the ledger.
func (x *examination) processor(p pool.ProcessorFigures) {
	if p.Faults == nil || !x.isWhole() {
		return
	}
	ended, letters, least, most := 0, 0, uint64(0), uint64(0)
	for c, n := range x.copies {
		if receiver(c.edge) == p.Name {
			letters += n.letters
			if n.done+n.letters == 0 && !x.isDurable(c.edge) {
				ended++
			}
		}
	}
	least, most = uint64(ended)+x.lost[p.Name], uint64(ended)+x.lost[p.Name]
	for _, e := range x.figures.Edges {
		switch {
		case e.To != p.Name || p.Faults.GaveUp == 0 || e.From == "" || x.isDurable(e.From+"."+e.Message): // a tick has no content that can be lost
		case x.policy(e) == "drop", x.NewNode != nil: // a node drops the messages for a node that has ended
			most += e.Dropped
		default:
			least, most = least+e.Dropped, most+e.Dropped
		}
	}
	if x.run.Fault == Crash {
		most = math.MaxUint64 // the process that has crashed may have given up messages that the next one got again
	}
	if n := p.Faults.Dropped; n < least || n > most {
		x.problem("%s: %d to %d messages have no other end, and the figures say that %d were dropped", p.Name, least, most, n)
	}
	if n := p.Faults.DeadLetters; n != uint64(letters) {
		x.problem("%s: morgue got %d dead letters, and the figures say %d", p.Name, letters, n)
	}
}

// order checks that an instance handles the messages of another instance in the order in which they
// were sent.
func (x *examination) order() {
	type pair struct {
		from     string
		sender   int
		receiver string
		instance int
	}
	position := make(map[string]map[int]int)
	for i, e := range x.events {
		if e.Kind == sent {
			if position[e.Where] == nil {
				position[e.Where] = make(map[int]int)
			}
			position[e.Where][e.ID] = i
		}
	}
	last := make(map[pair]int)
	for _, e := range x.events {
		at, ok := position[e.Where][e.ID]
		if e.Kind != began || !ok || x.isDurable(e.Where) || e.Where == "work.LedgerProposal" && (x.Options["machine"] == "several" || x.run.Fault != NoFault) {
			continue // an update does not know its instance, and the next process of a node reads its log again
		}
		from, _, _ := strings.Cut(e.Where, ".")
		sender := e.ID % instancesMax
		if from == "work" || from == "desk" {
			sender = e.ID / attemptsMax % instancesMax // Handle puts the sender into the id
		}
		p := pair{from, sender, receiver(e.Where), e.Instance}
		if at < last[p] {
			x.problem("%s %d came to instance %d after a message that was sent later", e.Where, e.ID, e.Instance)
		}
		last[p] = max(last[p], at)
	}
}

// failures returns the number of failures in the ledger.
func (x *examination) failures() (n int) {
	for _, e := range x.events {
		if e.Kind == failed && !x.isDurable(e.Where) { // Run continues after the failure of a durable function
			n++
		}
	}
	return n
}

// result compares the error of Run with the ledger.
func (x *examination) result() {
	failures := x.failures()
	switch gaveUp := x.gaveUp(); {
	case errors.Is(x.err, errLate):
		x.problem("the run did not end within %v", patience)
	case errors.Is(x.err, pool.ErrDrainTimeout) && x.run.Failure.IsHang() && x.runsDurable(x.run.Place):
		// a durable function has no health timeout
	case x.run.Fault == Cut && errors.Is(x.err, cluster.ErrFenced):
		// the cut was longer than retry.timeout
	case failures == 0 && x.err != nil && !(x.HasProcesses() && errors.Is(x.err, pool.ErrHung)): // on a busy host a process may get no CPU for its health timeout
		x.problem("nothing has failed, and Run returns %v", x.err)
	case gaveUp && x.err == nil:
		x.problem("an instance was given up, and Run returns nil")
	case failures > 0 && x.err == nil && x.isFatal():
		x.problem("a failure that ends Run is lost: it returns nil")
	case failures > 0 && x.isFatal() && x.run.Failure.isError() && !x.isIsolated(x.run.Place) && !isPlanned(x.err):
		x.problem("Run does not return the error of the failure: %v", x.err)
	}
}

// isError reports whether the cause of the failure is errPlanned.
func (f Failure) isError() bool { return f == ReturnErr || f == Joined || f == Panic }

// isFatal reports whether the first failure ends Run, or Run returns it at the end.
func (x *examination) isFatal() bool {
	if x.run.Failure.IsHang() && x.run.Method != "" && x.run.Method != "Init" {
		return true // no restart ends a hang of Finish or of the last Close
	}
	if x.run.Method != "" && x.run.Method != "Revert" || x.run.Failure == Hang || x.run.Failure == Pause { // Hang ends with its context, and after Pause the process continues
		return false
	}
	if x.run.Place == "ledger" {
		return x.isFatalUpdate()
	}
	restarts := x.run.Place == "work" && (x.Options["restart"] != "none" && x.Options["restart"] != "never" || x.Options["group"] != "no") ||
		x.run.Place == "sink" && (x.Options["sink"] == "watched" || x.Options["group"] != "no")
	isReturned := x.run.Failure == ReturnErr || x.run.Failure == Joined
	continues := isReturned && x.run.Place == "work" && slices.Contains([]string{"skip", "retry", "delayed"}, x.Options["on_error"])
	return !restarts && !continues
}

// lifecycles checks that each instance is finished and closed.
func (x *examination) lifecycles() {
	if x.err != nil || x.run.Failure.IsHang() || x.HasProcesses() {
		return
	}
	type instance struct {
		name  string
		index int
	}
	starts, closes, finishes := make(map[instance]int), make(map[instance]int), make(map[instance]int)
	for _, e := range x.events {
		i := instance{e.Where, e.Instance}
		switch {
		case e.Kind == started:
			starts[i]++
			finishes[i] = 0
		case e.Kind == finished, e.Kind == failed && x.run.Method == "Finish" && e.ID == 0:
			finishes[i]++
		case e.Kind == closed, e.Kind == failed && x.run.Method == "Close" && e.ID == 0:
			closes[i]++
		}
	}
	for i, n := range starts {
		if closes[i] != n {
			x.problem("%s %d was started %d times and closed %d times", i.name, i.index, n, closes[i])
		}
		if finishes[i] != 1 {
			x.problem("the last instance of %s %d was finished %d times", i.name, i.index, finishes[i])
		}
	}
}
