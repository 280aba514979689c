package process

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"testing"

	"github.com/topogen/topogen/internal/test/allocated"
)

// frame returns a frame as it is sent.
func frame(kind frameKind, body ...byte) []byte {
	b := append(begin(nil, kind), body...)
	if err := end(b, MessageLimitDefault); err != nil {
		panic(err)
	}
	return b
}

// TestAnnouncedSizesAllocateNothing: a sender that announces many bytes and sends few makes the
// reader allocate little memory.
func TestAnnouncedSizesAllocateNothing(t *testing.T) {
	for _, sent := range []int{0, 1, 3 * chunk} {
		input := append(frame(frameAnswer), make([]byte, sent)...)
		input[0], input[1] = MessageLimitDefault>>24, 0xFF&(MessageLimitDefault>>16)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, err := newFrames(bytes.NewReader(input), MessageLimitDefault).next(nil)
		runtime.ReadMemStats(&after)
		if err != io.ErrUnexpectedEOF {
			t.Errorf("%d bytes: %v", sent, err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > uint64(4*sent+4*chunk) {
			t.Errorf("%d bytes caused an allocation of %d", sent, n)
		}
	}
}

// FuzzFrames decodes any bytes as frames and answers.
func FuzzFrames(f *testing.F) {
	var a AnswerBuilder
	a.Send(1, 2, []byte("payload"))
	a.Reply([]byte("reply"))
	f.Add(frame(frameAnswer, a.appendBody(nil, nil, true)...))
	f.Add(frame(frameAnswer, a.appendBody(nil, errors.New("failed"), false)...))
	f.Add([]byte("\x000000"))
	f.Add([]byte("\x00\x00\x00\x01\x00\x00\x00\x02\xff\xff\xff\xf3payload"))
	f.Add(append(frame(frameHello, appendHello(nil, "hash", nil, nil)...), frame(frameAlive)...))
	f.Fuzz(func(t *testing.T, input []byte) {
		allocated.Within(t, 4*chunk+100*len(input), func() { decodeFrames(t, input) }) // the buffer of the reader, and up to two chunks for a frame that announces more, and what grows them
	})
}

func decodeFrames(t *testing.T, input []byte) {
	frames := newFrames(bytes.NewReader(input), MessageLimitDefault)
	var buf []byte
	for total := 0; ; {
		_, body, err := frames.next(buf)
		if err != nil {
			return
		}
		if total += headerSize + len(body); total > len(input) {
			t.Fatal("the frame has more bytes than were sent")
		}
		var a Answer
		if a.decode(body) == nil {
			again := appendError(nil, a.Err, nil)
			_ = (&fields{rest: again}).error()
			for s := range a.Sends() {
				if len(s.Payload) > len(body) {
					t.Fatal("a message is larger than its frame")
				}
			}
		}
		buf = body
	}
}

// FuzzVariable parses any value of the variable.
func FuzzVariable(f *testing.F) {
	f.Add(Info{Topology: "test", Hash: "hash", Processor: "camera", Instances: 1}.value(1, []int{5, 6}))
	f.Fuzz(func(t *testing.T, value string) {
		var info Info
		var parent int
		var inherited []int
		var err error
		allocated.Within(t, 40*len(value), func() { info, parent, inherited, err = parseValue(value) })
		if err != nil {
			return
		}
		again, parent2, inherited2, err := parseValue(info.value(parent, inherited))
		if err != nil || again != info || parent2 != parent || len(inherited2) != len(inherited) {
			t.Errorf("%q is parsed as %v, %v", value, info, again)
		}
	})
}
