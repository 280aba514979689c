package processtests_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/generated_test/unsendable"
	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/process"
	"github.com/topogen/topogen/runtime/topo"
)

// unsendableBegin runs the topology until end is called, which returns the error of Run.
func unsendableBegin(t *testing.T) (top *unsendable.Topology, end func() error) {
	t.Helper()
	top, err := unsendable.New(unsendable.Processors{}, pool.Logger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- top.Run(ctx) }()
	return top, func() error {
		t.Helper()
		stop()
		select {
		case err := <-ended:
			balanced(t, top)
			return err
		case <-time.After(time.Minute):
			t.Fatal("Run does not return")
			return nil
		}
	}
}

// balanced checks that each accepted message was handled or dropped, or is queued.
func balanced(t *testing.T, top *unsendable.Topology) {
	t.Helper()
	for i, e := range top.Snapshot().Edges {
		if e.Sent != e.Received+e.Dropped+uint64(e.Len) {
			t.Errorf("%v: sent %d, received %d, dropped %d, queued %d", unsendable.EdgeIndex(i), e.Sent, e.Received, e.Dropped, e.Len)
		}
	}
}

func faults(top *unsendable.Topology, p unsendable.ProcessorIndex) pool.FaultFigures {
	return *top.Snapshot().Processors[p].Faults
}

// TestUnsendableSendRefuses checks that sending a message from outside that cannot be encoded returns an
// error that names the edge, and that the receiver is not affected.
func TestUnsendableSendRefuses(t *testing.T) {
	t.Parallel()
	top, end := unsendableBegin(t)
	api := top.Api()
	before, err := api.AskParcelToStopping(t.Context(), unsendable.Parcel{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range unsendable.Unsendable {
		t.Run(name, func(t *testing.T) {
			p := unsendable.NewParcel(name)
			_, asked := api.AskParcelToStopping(t.Context(), p)
			for to, err := range map[string]error{
				"stopping": asked,
				"retrying": api.SendParcelToRetrying(t.Context(), p),
				"several":  api.SendParcelToSeveral(t.Context(), p),
			} {
				if !errors.Is(err, process.ErrEncode) || errors.Is(err, topo.ErrFailed) || !strings.Contains(err.Error(), "api -> "+to+": Parcel") {
					t.Errorf("%s: %.300v", to, err)
				}
				if err != nil && len(err.Error()) > 1000 {
					t.Errorf("the error has %d bytes: %.300v", len(err.Error()), err)
				}
			}
		})
	}
	after, err := api.AskParcelToStopping(t.Context(), unsendable.Parcel{})
	if err != nil || after.Process != before.Process || after.Handled != before.Handled+1 {
		t.Errorf("%+v, %v after %+v", after, err, before)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
	if f := *top.Snapshot().Faults; f != (pool.FaultFigures{}) {
		t.Errorf("%+v", f)
	}
	for e, want := range map[unsendable.EdgeIndex]int{unsendable.EdgeApiStoppingParcel: 2, unsendable.EdgeApiRetryingParcel: 0, unsendable.EdgeApiSeveralParcel: 0} {
		figures, refused := top.Snapshot().Edges[e], len(unsendable.Unsendable)
		if figures.Received != uint64(want) || figures.Dropped != uint64(refused) {
			t.Errorf("%v: %+v", e, figures)
		}
	}
}

// TestUnsendableARefusedMessageReachesNobody checks that no receiver gets a refused message, not even one
// in this process.
func TestUnsendableARefusedMessageReachesNobody(t *testing.T) {
	t.Parallel()
	top, end := unsendableBegin(t)
	if err := top.Api().SendParcel(t.Context(), unsendable.NewParcel("cycle")); !errors.Is(err, process.ErrEncode) {
		t.Error(err)
	}
	if err := top.Api().SendParcelToSink(t.Context(), unsendable.NewParcel("cycle")); err != nil { // no encoding is needed
		t.Error(err)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
	if got := top.Sink(0).Got; !slices.Equal(got, []string{"cycle"}) {
		t.Errorf("%q", got)
	}
}

// TestUnsendableAMessageFromInside checks that a queued message that cannot be encoded is given up when
// it would be handled. The receiving process continues, for every on_error.
func TestUnsendableAMessageFromInside(t *testing.T) {
	t.Parallel()
	top, end := unsendableBegin(t)
	before := make(map[string]unsendable.Answer)
	ask := map[string]func(context.Context, unsendable.Parcel) (unsendable.Answer, error){
		"stopping": top.Api().AskParcelToStopping, "retrying": top.Api().AskParcelToRetrying, "skipping": top.Api().AskParcelToSkipping,
	}
	answer := func(name string) unsendable.Answer {
		t.Helper()
		a, err := ask[name](t.Context(), unsendable.Parcel{})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	for name := range ask {
		before[name] = answer(name)
	}
	for _, name := range append(unsendable.Unsendable, "chunk") {
		if err := top.Api().SendTask(t.Context(), unsendable.Task{Make: name}); err != nil {
			t.Fatal(err)
		}
	}
	for name, b := range before {
		await(t, "the last parcel is handled", func() bool { return answer(name).Handled > b.Handled+1 })
	}
	for name, b := range before {
		if a := answer(name); a.Process != b.Process {
			t.Errorf("%s: process %d in place of %d", name, a.Process, b.Process)
		}
	}
	if err := end(); err != nil {
		t.Error(err)
	}
	n := uint64(len(unsendable.Unsendable))
	if f := faults(top, unsendable.ProcessorStopping); f != (pool.FaultFigures{DeadLetters: n}) {
		t.Errorf("stopping: %+v", f)
	}
	for _, p := range []unsendable.ProcessorIndex{unsendable.ProcessorRetrying, unsendable.ProcessorSkipping} {
		if f := faults(top, p); f != (pool.FaultFigures{Dropped: n}) {
			t.Errorf("%v: %+v", p, f)
		}
	}
	letters := top.Morgue(0).Letters
	if len(letters) != len(unsendable.Unsendable) {
		t.Fatalf("%d letters", len(letters))
	}
	for i, d := range letters {
		p, ok := unsendable.DeadLetterInsideStoppingParcel(d)
		if !ok || p.Make != unsendable.Unsendable[i] || d.Attempts != 0 || !errors.Is(d.Err, process.ErrEncode) {
			t.Errorf("%s: %d attempts, %.300v", p.Make, d.Attempts, d.Err)
		}
	}
}

// TestUnsendableErrorsSayWhatToDo checks that errors name the field and a remedy.
func TestUnsendableErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	top, end := unsendableBegin(t)
	for name, want := range map[string]string{
		"cycle":  "it is nested more than 1000 deep; it must not contain itself: send a slice instead of a list of pointers",
		"deep":   "it is nested more than 1000 deep; it must not contain itself: send a slice instead of a list of pointers",
		"shared": "larger than the message limit of 1048576 bytes; send less at once, or raise message_limit (TOPOGEN_MESSAGE_LIMIT)",
		"large":  "larger than the message limit of 1048576 bytes, got 1048605; send less at once, or raise message_limit",
		"fails":  "wire: Parcel.Odd: this Odd cannot be written",
		"panics": "panic: this Odd panics",
	} {
		if err := top.Api().SendParcelToSkipping(t.Context(), unsendable.NewParcel(name)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := end(); err != nil {
		t.Error(err)
	}
}

// TestUnsendableWhatAChildReturns checks that a message or reply of a child that cannot be encoded, or
// that exceeds the limit, is an error of the call, and that the process continues.
func TestUnsendableWhatAChildReturns(t *testing.T) {
	t.Parallel()
	top, end := unsendableBegin(t)
	ask := top.Api().AskParcelToSkipping
	before, err := ask(t.Context(), unsendable.Parcel{})
	if err != nil {
		t.Fatal(err)
	}
	failures := uint64(0)
	fails := func(what, want string, is error) {
		t.Helper()
		failures++
		_, err := ask(t.Context(), unsendable.Parcel{Make: what})
		if !errors.Is(err, topo.ErrFailed) || !errors.Is(err, is) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %.300v", what, err)
		}
	}
	for _, name := range unsendable.Unsendable {
		fails("send "+name, "skipping -> sink: Parcel cannot be encoded", process.ErrEncode)
		fails("answer "+name, "the answer Answer cannot be encoded", process.ErrEncode)
	}
	fails("send large", "skipping -> sink: Parcel cannot be encoded", process.ErrTooLarge)
	fails("send-many", "messages and reply of the call: process: larger than the message limit", process.ErrTooLarge)
	fails("send-and-answer", "messages and reply of the call: process: larger than the message limit", process.ErrTooLarge)
	for _, good := range []string{"send chunk", "answer chunk"} {
		if _, err := ask(t.Context(), unsendable.Parcel{Make: good}); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	after, err := ask(t.Context(), unsendable.Parcel{})
	if err != nil || after.Process != before.Process || after.Handled != before.Handled+int(failures)+3 {
		t.Errorf("%+v, %v after %+v", after, err, before)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
	if f := faults(top, unsendable.ProcessorSkipping); f != (pool.FaultFigures{Dropped: failures}) {
		t.Errorf("%+v", f)
	}
	if got := top.Sink(0).Got; !slices.Equal(got, []string{"chunk"}) {
		t.Errorf("%q", got)
	}
}

// TestUnsendableTheLimitIsTheSame checks that the limit is the same in both directions: a process can
// send on each message that it can receive, together with a small reply.
func TestUnsendableTheLimitIsTheSame(t *testing.T) {
	t.Parallel()
	top, end := unsendableBegin(t)
	var largest int
	for low, high := 0, unsendable.Limit; low < high; {
		largest = (low + high + 1) / 2
		_, err := top.Api().AskParcelToSkipping(t.Context(), unsendable.Parcel{Make: "send-on", Load: strings.Repeat("x", largest)})
		switch {
		case err == nil:
			low = largest
		case errors.Is(err, process.ErrTooLarge):
			high = largest - 1
		default:
			t.Fatalf("%d bytes: %.300v", largest, err)
		}
		largest = low
	}
	if largest < unsendable.Limit-100 || largest >= unsendable.Limit {
		t.Errorf("at most %d bytes", largest)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
}

// TestUnsendableAMessageThatCannotBeDecoded checks that a message that cannot be decoded is given up at
// once, because the receiver is not the cause.
func TestUnsendableAMessageThatCannotBeDecoded(t *testing.T) {
	t.Parallel()
	top, end := unsendableBegin(t)
	before, err := top.Api().AskParcelToStopping(t.Context(), unsendable.Parcel{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := top.Api().AskParcelToStopping(t.Context(), unsendable.NewParcel("unreadable")); !errors.Is(err, topo.ErrFailed) || !errors.Is(err, process.ErrDecode) {
		t.Error(err)
	}
	after, err := top.Api().AskParcelToStopping(t.Context(), unsendable.Parcel{})
	if err != nil || after.Process != before.Process || after.Handled != before.Handled+1 {
		t.Errorf("%+v, %v after %+v", after, err, before)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
	if f := faults(top, unsendable.ProcessorStopping); f != (pool.FaultFigures{DeadLetters: 1}) {
		t.Errorf("%+v", f)
	}
}
