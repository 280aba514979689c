package cluster

import (
	"strings"
	"testing"

	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/piper/border"
)

// TestHostileMessages passes messages to a node that no correct node sends. Each must be
// refused, and none may make the node allocate, fail or wait.
func TestHostileMessages(t *testing.T) {
	core := coreOf(t, everywhere)
	n2, err := core.newPeer("n2")
	if err != nil {
		t.Fatal(err)
	}
	client, err := core.clients.newPeer(clientPrefix + "web")
	if err != nil {
		t.Fatal(err)
	}
	open := func(from, instance, to, i int) []byte {
		return appendOpen(nil, border.Pair{From: from, FromInstance: instance, To: to, ToInstance: i})
	}
	if err := n2.message(firstLane, open(0, 0, 1, 0)); err != nil {
		t.Fatal(err)
	}
	chunk := func(messages, skip int, data string) []byte {
		return chunkMessage(messages, skip, []byte(data))
	}
	for name, c := range map[string]struct {
		from interface {
			message(lane uint64, m []byte) error
		}
		lane uint64
		m    []byte
		want string
	}{
		"empty":                       {n2, firstLane, nil, "malformed"},
		"an unknown kind":             {n2, firstLane, []byte{99}, "malformed"},
		"a pair in parts":             {n2, firstLane, open(0, 0, 1, 0)[:3], "malformed"},
		"a large processor":           {n2, firstLane + 1, open(1<<30, 0, 1, 0), "no such processor"},
		"a large instance":            {n2, firstLane + 1, open(0, 0, 1, 4), "has no instance 4"},
		"a large sending instance":    {n2, firstLane + 1, open(0, 2, 1, 0), "has no instance 2"},
		"all nodes of a spread one":   {n2, firstLane + 1, open(0, 0, 1, border.OnAllOthers), "has no instance -1"},
		"a lane that is not open":     {n2, firstLane + 7, chunk(1, 0, "\x00"), "not opened"},
		"more messages than bytes":    {n2, firstLane, chunk(9, 0, "\x00"), "malformed"},
		"more skipped than there":     {n2, firstLane, chunk(1, 2, "\x00\x00\x00"), "malformed"},
		"all messages skipped":        {n2, firstLane, chunk(1, 1, "\x00"), "malformed"},
		"a chunk without messages":    {n2, firstLane, chunk(0, 0, "\x00"), "malformed"},
		"again for no reason":         {n2, firstLane, []byte{pairAgain}, "not ignored"},
		"an unknown pair again":       {n2, laneAnswers | firstLane, []byte{controlAgain, firstLane, 0}, "unknown pair"},
		"a second lane of a pair":     {n2, firstLane + 1, open(0, 0, 1, 0), "opened twice"},
		"a second pair of a lane":     {n2, firstLane, open(0, 0, 1, 1), "opened twice"},
		"a pair without an edge":      {n2, firstLane + 1, open(1, 0, 0, 0), "no edge"},
		"a confirmation of nothing":   {n2, laneConfirm, []byte{controlConfirm, firstLane, 1}, "unknown pair"},
		"a return of nothing":         {n2, laneAnswers | firstLane, []byte{controlReturned, firstLane}, "unknown pair"},
		"half a return":               {n2, laneAnswers | firstLane, []byte{controlReturned}, "unknown pair"},
		"half a confirmation":         {n2, laneConfirm, []byte{controlConfirm, firstLane}, "malformed"},
		"a reply to nothing":          {n2, laneConfirm, []byte{controlReply, firstLane, 1, 0}, "malformed"},
		"an unknown group":            {n2, laneControl, (&groupMessage{kind: controlStatus, group: 99, phase: piper.GroupClosing}).append(nil), "group 99"},
		"an end that is not empty":    {n2, laneControl, []byte{controlFinished, 1}, "malformed"},
		"a phase that does not exist": {n2, laneControl, []byte{controlStatus, 0, 0x81, 2, 0, 1, 0}, "malformed"},
		"half a message about groups": {n2, laneControl, []byte{controlStatus}, "malformed"},
		"an unknown control message":  {n2, laneControl, []byte{200}, "malformed"},
		"a client as a source":        {client, firstLane, open(0, 0, 1, 0), "not external"},
		"a client in no lane of its":  {client, firstLane, chunk(1, 0, "\x00"), "not opened"},
		"a client that replies":       {client, laneAnswers | firstLane, []byte{controlReply, firstLane, 1, 0}, "malformed"},
		"a client that confirms":      {client, laneConfirm, []byte{controlConfirm}, "of a client"},
		"a client that agrees":        {client, laneControl, (&groupMessage{kind: controlStatus}).append(nil), "of a client"},
		"a client that ends all":      {client, laneControl, []byte{controlFailed}, "of a client"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.from.message(c.lane, c.m); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got the error %v, want one with %q", err, c.want)
			}
		})
	}
	t.Run("messages without end", func(t *testing.T) {
		flood := chunk(1<<16, 0, strings.Repeat("\x00", 1<<16))
		in := n2.in[firstLane]
		for range 1000 {
			if err := n2.message(firstLane, flood); err != nil {
				t.Fatal(err)
			}
		}
		if n := in.waiting(); n != in.limit || in.limit > 1<<20 {
			t.Errorf("%d messages of one pair wait here, want the limit, which is %d", n, in.limit)
		}
	})
	t.Run("a chunk with too many messages", func(t *testing.T) {
		n := int(n2.in[firstLane].limit/2) + 1
		if err := n2.message(firstLane, chunk(n, 0, strings.Repeat("\x00", n))); err == nil || !strings.Contains(err.Error(), "limit") {
			t.Errorf("got the error %v, want one with the limit", err)
		}
	})
}

// noPlaces are the places of a topology without nodes.
type noPlaces struct{}

func (noPlaces) Node(int, int) (string, bool) { return "", false }
func (noPlaces) Members() []string            { return nil }
func (noPlaces) Boot(string) (uint64, bool)   { return 0, false }
func (noPlaces) End() *table.End              { return nil }
