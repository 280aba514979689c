package nodes

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

func init() {
	roles["nats-server"] = serveNATS
	roles["nats-sink"] = sinkNATS
}

// serveNATS runs a NATS server.
func serveNATS(string) error {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true})
	if err != nil {
		return err
	}
	go s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		return fmt.Errorf("the NATS server does not start")
	}
	fmt.Println(s.ClientURL())
	untilClosed()
	s.Shutdown()
	return nil
}

// sinkNATS counts messages, and answers when it has all of them.
func sinkNATS(url string) error {
	c, err := nats.Connect(url)
	if err != nil {
		return err
	}
	defer c.Close()
	n := 0
	s, err := c.Subscribe("flood", func(m *nats.Msg) {
		n++
		if m.Reply != "" {
			_ = m.Respond(fmt.Append(nil, n))
		}
	})
	if err != nil {
		return err
	}
	if err := s.SetPendingLimits(-1, -1); err != nil {
		return err
	}
	if err := c.Flush(); err != nil {
		return err
	}
	fmt.Println("ready")
	untilClosed()
	return nil
}

func BenchmarkOneWay_NATS(b *testing.B) {
	url := start(b, "nats-server", "")
	start(b, "nats-sink", url)
	c, err := nats.Connect(url)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	m := make([]byte, messageBytes)
	b.SetBytes(messageBytes)
	b.ResetTimer()
	for range b.N {
		if err := c.Publish("flood", m); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := c.Request("flood", m, time.Minute); err != nil { // it is answered after all others
		b.Fatal(err)
	}
}
