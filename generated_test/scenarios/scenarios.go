package scenarios

import (
	"errors"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/pool"
)

// All are the scenarios by name.
var All = map[string]func(t *testing.T, h Theatre){
	"restart recovers from failure":         RestartRecovers,
	"limit reached":                         LimitReached,
	"exhaustion marks it failed":            ExhaustionIsFailure,
	"always restarts on clean exit":         AlwaysRestarts,
	"window resets the counter":             WindowResets,
	"input timeout delivers closed":         TimeoutCloses,
	"health timeout kills the unresponsive": HangIsEnded,
	"restarted is delivered downstream":     RestartIsTold,
	"recovered after a broken input":        RecoveryHasData,
	"health timeouts exhaust the budget":    HangsExhaust,
	"planned stop reports clean":            StopIsClean,
}

// RestartRecovers checks that a processor is restarted with a new state after an error and
// after a panic.
func RestartRecovers(t *testing.T, h Theatre) {
	p := h.begin(t)
	p.tell("limited", Work, Work, Fail, Work, Panic, Work)
	p.await("limited: 1")
	p.await("limited: 2")
	p.await("limited: 1")
	p.await("limited: 1")
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	p.faults("limited", pool.FaultFigures{Restarts: 2, Dropped: 2})
}

// LimitReached checks that a processor is not restarted after its last allowed restart, that
// later messages to it count as dropped, and that the other processors continue.
func LimitReached(t *testing.T, h Theatre) {
	p := h.begin(t)
	p.tell("limited", Fail, Fail, Work, Fail, Work, Work)
	p.await("limited: 1")
	p.await("closed: limited -> witness: Report")
	p.tell("limited", Work)
	p.tell("sensor", Work)
	p.await("sensor: 1")
	if err := p.stop(); !errors.Is(err, pool.ErrGaveUp) {
		t.Error(err)
	}
	p.faults("limited", pool.FaultFigures{Restarts: 2, Dropped: 6, GaveUp: 1})
	for _, e := range p.topology.Snapshot().Edges {
		if e.To == "limited" && (e.Sent != 7 || e.Received != 4 || e.Dropped != 3 || e.Len != 0) {
			t.Errorf("%+v", e)
		}
	}
}

// ExhaustionIsFailure checks that the error of Run has the failure and its cause.
func ExhaustionIsFailure(t *testing.T, h Theatre) {
	p := h.begin(t)
	p.tell("limited", Fail, Fail, Fail)
	p.await("closed: limited -> witness: Report")
	err := p.stop()
	var e *pool.HandlerError
	if !errors.Is(err, pool.ErrGaveUp) || !errors.As(err, &e) || e.Processor != "limited" {
		t.Error(err)
	}
	p.tale("limited", "restarted: limited", "restarted: limited", "closed: limited -> witness: Report")
}

// AlwaysRestarts checks that the policy always restarts a processor that ends without an
// error, each time after the same delay.
func AlwaysRestarts(t *testing.T, h Theatre) {
	p := h.begin(t)
	for range 3 {
		p.tell("batch", Work)
		p.await("batch: 1")
		ended := p.tell("batch", End)
		p.took(ended, p.await("restarted: batch"), 200*time.Millisecond)
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	p.faults("batch", pool.FaultFigures{Restarts: 3})
}

// WindowResets checks that restarts outside the window do not count.
func WindowResets(t *testing.T, h Theatre) {
	p := h.begin(t)
	for range 3 {
		p.tell("windowed", Fail, Fail, Work)
		p.await("windowed: 1")
		p.pass(2*time.Second + p.Slack + time.Millisecond)
	}
	p.tell("windowed", Fail, Fail, Fail)
	p.await("closed: windowed -> witness: Report")
	if err := p.stop(); !errors.Is(err, pool.ErrGaveUp) {
		t.Error(err)
	}
	p.faults("windowed", pool.FaultFigures{Restarts: 8, Dropped: 9, GaveUp: 1})
}

// TimeoutCloses checks that a receiver gets InputClosed at the deadline of a silent input.
func TimeoutCloses(t *testing.T, h Theatre) {
	p := h.begin(t)
	p.pass(time.Second) // the deadline begins with the first message
	p.tell("sensor", Work)
	p.await("sensor: 1")
	p.pass(300 * time.Millisecond)
	p.tell("sensor", Work)
	p.took(p.await("sensor: 2"), p.await("closed: sensor -> witness: Report"), 500*time.Millisecond)
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	p.tale("sensor", "sensor: 1", "sensor: 2", "closed: sensor -> witness: Report")
	p.faults("witness", pool.FaultFigures{InputTimeouts: 1})
}

// HangIsEnded checks that a hanging processor is ended at its deadline and restarted.
func HangIsEnded(t *testing.T, h Theatre) {
	p := h.begin(t)
	p.tell("monitored", Work)
	p.await("monitored: 1")
	p.pass(2 * time.Second) // being idle does not count as hanging
	hangs := p.tell("monitored", Hang, Work)
	p.took(hangs, p.await("restarted: monitored"), 500*time.Millisecond)
	p.await("monitored: 1")
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	p.hangs("monitored", pool.FaultFigures{Restarts: 1, HealthCheckKills: 1, Dropped: 1})
}

// hangs is faults for a hanging processor: a goroutine is abandoned, a process is killed.
func (p *play) hangs(processor string, want pool.FaultFigures) {
	p.Helper()
	if p.Abandons {
		want.Abandoned = want.HealthCheckKills
	}
	p.faults(processor, want)
}

// RestartIsTold checks that each receiver is notified once of each restart, with one edge and
// with several edges from the restarted processor.
func RestartIsTold(t *testing.T, h Theatre) {
	p := h.begin(t)
	p.tell("limited", Fail, Work)
	p.await("limited: 1")
	p.await("restarted: limited")
	p.await("restarted, to the bystander: limited")
	p.tell("limited", Panic, Work)
	p.await("limited: 1")
	p.await("restarted: limited")
	p.await("restarted, to the bystander: limited")
	p.pass(time.Second)
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	told := p.texts(func(s string) bool { return s == "restarted: limited" || s == "restarted, to the bystander: limited" })
	if len(told) != 4 {
		t.Errorf("%q", told)
	}
}

// RecoveryHasData checks that the first message after a silence is handled before
// InputRecovered is called, also if a new instance has sent the message.
func RecoveryHasData(t *testing.T, h Theatre) {
	p := h.begin(t)
	p.tell("sensor", Work)
	p.await("closed: sensor -> witness: Report")
	p.tell("sensor", Work)
	p.await("recovered: sensor -> witness: Report")
	p.tell("sensor", Fail)
	p.await("restarted: sensor")
	p.await("closed: sensor -> witness: Report")
	p.tell("sensor", Work)
	p.await("recovered: sensor -> witness: Report")
	p.await("closed: sensor -> witness: Report")
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	const closed, recovered = "closed: sensor -> witness: Report", "recovered: sensor -> witness: Report"
	p.tale("sensor", "sensor: 1", closed, "sensor: 2", recovered, "restarted: sensor", closed, "sensor: 1", recovered, closed)
	p.faults("witness", pool.FaultFigures{InputTimeouts: 3, CircuitBreakerRecoveries: 2})
}

// HangsExhaust checks that hanging counts as a failure.
func HangsExhaust(t *testing.T, h Theatre) {
	p := h.begin(t)
	began := p.tell("monitored", Hang, Hang, Hang)
	p.took(began, p.await("closed: monitored -> witness: Report"), 1500*time.Millisecond)
	if err := p.stop(); !errors.Is(err, pool.ErrGaveUp) {
		t.Error(err)
	}
	p.hangs("monitored", pool.FaultFigures{Restarts: 2, HealthCheckKills: 3, Dropped: 3, GaveUp: 1})
}

// StopIsClean checks that after a stop an instance is restarted only while messages are
// queued for it. All accepted messages are handled, and Run returns nil.
func StopIsClean(t *testing.T, h Theatre) {
	p := h.begin(t)
	p.tell("delayed", Fail)
	p.tell("batch", Work, End)
	p.await("batch: 1")
	p.pass(100 * time.Millisecond)
	p.tell("limited", Work)
	p.tell("batch", Work)
	before := p.clock()
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	p.took(before, p.clock(), 100*time.Millisecond) // the rest of the delay of batch; the delay of delayed is longer
	p.until("limited: 1", 1)
	p.until("batch: 1", 2)
	p.until("closed: all", 1)
	p.faults("delayed", pool.FaultFigures{Dropped: 1})
	p.faults("batch", pool.FaultFigures{Restarts: 1})
}
