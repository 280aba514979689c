package engine

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// TestStreamBytes: connections that do not read have few large messages, each of them and
// all together. When they read, they ask for the messages that have stayed in the store.
func TestStreamBytes(t *testing.T) {
	const size, connections = 4 << 20, 50
	data := strings.Repeat("x", size)
	synctest.Test(t, func(t *testing.T) {
		h := newHub(connections, BufferMaxDefault, &counters{}, func() time.Duration { return 0 })
		var list []*Connection
		for i := range connections {
			c, err := h.connect("g", fmt.Sprint(i))
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, c)
			h.takeRefills()
			for j := range 5 {
				unblock := &protocol.Promise{ID: fmt.Sprint(i, "-", j), Value: protocol.Value{Data: &data}}
				h.deliver([]core.Effect{{Address: "poll://uni@g/" + c.pid, Message: protocol.Message{Unblock: unblock}}}, nil)
			}
			synctest.Wait()
			if c.bytes > messageBytesMax || h.bytes > streamBytesMax+size || !c.starved {
				t.Fatalf("connection %d has %d bytes, all have %d", i, c.bytes, h.bytes)
			}
		}
		if !h.full {
			t.Errorf("%d bytes in %d connections", h.bytes, connections)
		}
		for _, c := range list {
			for taken := c.bytes / size; taken > 0; taken-- {
				<-c.Messages()
			}
		}
		synctest.Wait()
		if h.bytes != 0 || h.full {
			t.Errorf("%d bytes after all messages were read", h.bytes)
		}
		if n := len(h.takeRefills()); n < connections {
			t.Errorf("%d of %d connections ask for messages", n, connections)
		}
		h.close()
	})
}

// TestConfirmedTooLate: a confirmation that comes after the end of the connection is not taken
// for one of the next message, which goes to another connection.
func TestConfirmedTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(10, BufferMaxDefault, &counters{}, func() time.Duration { return 0 })
		c, err := h.connect("g", "p")
		if err != nil {
			t.Fatal(err)
		}
		c.Confirm()
		c.Close()
		c.Confirmed()
		c.sent(core.Effect{Address: "poll://any@g", Message: protocol.Message{Unblock: &protocol.Promise{ID: "a"}}}) // as the pump does, if it was about to hand over a message
		if n := h.counters.polled.delivered.Load(); n != 0 {
			t.Errorf("%d messages count as delivered", n)
		}
		h.close()
	})
}
