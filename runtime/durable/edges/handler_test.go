package edges

import (
	"encoding/json"
	"testing"

	"github.com/topogen/topogen/runtime/durable"
	"github.com/topogen/topogen/runtime/piper"
)

// TestHandler decodes messages for the instances of a processor. Each attempt gets a message of its
// own, and the dead letter has the message as it was sent.
func TestHandler(t *testing.T) {
	type message struct {
		To   int
		Tags []string
	}
	var seen []message
	instances := [2]Instance{{Unit: new(piper.Unit), Inbox: new(Inbox)}, {Unit: new(piper.Unit), Inbox: new(Inbox)}}
	h := To(len(instances), func(m *message) int { return m.To }, func(i int) Instance { return instances[i] }, func(i int, _ durable.Context, m *message) (any, error) {
		seen = append(seen, message{m.To, append([]string(nil), m.Tags...)})
		m.To, m.Tags[0] = 7, "changed"
		return i, nil
	})
	for arg, want := range map[string]string{
		`{"To":-1}`:  "the argument of the call does not fit: the message names an instance that does not exist: the processor has the instances 0 to 1",
		`{"To":2}`:   "the argument of the call does not fit: the message names an instance that does not exist: the processor has the instances 0 to 1",
		`{"To":"x"}`: "the argument of the call does not fit: json: cannot unmarshal string into Go struct field message.To of type int",
	} {
		if _, err := h.open(json.RawMessage(arg)); err == nil || err.Error() != "durable: "+want {
			t.Errorf("%s: %v, want %s", arg, err, want)
		}
	}
	arg := json.RawMessage(`{"To":1,"Tags":["a"]}`)
	d, err := h.open(arg)
	if err != nil || d.unit != instances[1].Unit || d.inbox != instances[1].Inbox {
		t.Fatalf("the delivery is %+v, %v", d, err)
	}
	for range 2 {
		if i, err := d.run(nil, arg); i != 1 || err != nil {
			t.Errorf("the handler of instance %v returned %v", i, err)
		}
	}
	for i, m := range append(seen, d.message().(message)) {
		if m.To != 1 || len(m.Tags) != 1 || m.Tags[0] != "a" {
			t.Errorf("message %d is %+v", i, m)
		}
	}
	if len(seen) != 2 {
		t.Errorf("the handler was called %d times", len(seen))
	}
}

// TestLimitBy reads the key of a limit from a message.
func TestLimitBy(t *testing.T) {
	type message struct{ Customer string }
	l := LimitBy(durable.Limit{Concurrency: 2}, func(m *message) string { return m.Customer })
	if key, err := l.Key(json.RawMessage(`{"Customer":"ann"}`)); key != "ann" || err != nil || l.Concurrency != 2 {
		t.Errorf("the key is %q, %v, and the limit is %+v", key, err, l)
	}
	if key, err := l.Key(json.RawMessage(`{"Customer":1}`)); key != "" || err == nil {
		t.Errorf("the key of another message is %q, %v", key, err)
	}
}
