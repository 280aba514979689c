package peers

import (
	"context"
	"encoding/binary"
	"strconv"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
)

// mill is a watermill Pub/Sub with one topic per subscriber.
type mill struct {
	*gochannel.GoChannel
	topics int
}

func newMill() *mill {
	return &mill{GoChannel: gochannel.NewGoChannel(gochannel.Config{OutputChannelBuffer: capacity}, nil)}
}

func (w *mill) subscribe(handle func(Message)) (topic string) {
	w.topics++
	topic = strconv.Itoa(w.topics)
	messages, err := w.Subscribe(context.Background(), topic)
	if err != nil {
		panic(err) // it only fails after Close
	}
	go func() {
		for m := range messages {
			handle(Message{binary.LittleEndian.Uint64(m.Payload)})
			m.Ack()
		}
	}()
	return topic
}

func (w *mill) send(topic string, m Message) {
	if err := w.Publish(topic, message.NewMessage("", binary.LittleEndian.AppendUint64(nil, m.N))); err != nil {
		panic(err)
	}
}

// end closes the Pub/Sub. Close of gochannel only fails if it was closed before.
func (w *mill) end() { _ = w.Close() }

func closeAfter(n int) (count func(Message), done <-chan struct{}) {
	c := make(chan struct{})
	return func(Message) {
		if n--; n == 0 {
			close(c)
		}
	}, c
}

// MillPipeline sends n messages through three subscribers.
func MillPipeline(n int) {
	w := newMill()
	defer w.end()
	count, done := closeAfter(n)
	third := w.subscribe(count)
	second := w.subscribe(func(m Message) { w.send(third, Message{m.N + 1}) })
	first := w.subscribe(func(m Message) { w.send(second, Message{m.N + 1}) })
	for i := range n {
		w.send(first, Message{uint64(i)})
	}
	<-done
}

// MillFanIn publishes n messages from eight goroutines to one subscriber.
func MillFanIn(n int) {
	w := newMill()
	defer w.end()
	each := max(n/sources, 1)
	count, done := closeAfter(each * sources)
	topic := w.subscribe(count)
	for range sources {
		go func() {
			for i := range each {
				w.send(topic, Message{uint64(i)})
			}
		}()
	}
	<-done
}

// MillPingPong sends one message back and forth between two subscribers, n hops in all.
func MillPingPong(n int) {
	w := newMill()
	defer w.end()
	done := make(chan struct{})
	topics := [2]string{"1", "2"}
	for i := range topics {
		w.subscribe(func(m Message) {
			if m.N == 0 {
				close(done)
				return
			}
			w.send(topics[1-i], Message{m.N - 1})
		})
	}
	w.send(topics[0], Message{uint64(n)})
	<-done
}
