package session_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/cluster/session"
)

// kindData and kindDataAck are the first bytes of data frames.
const (
	kindAck     = 3
	kindData    = 4
	kindDataAck = 5
)

func isData(frame []byte) bool { return frame[0]&0x7f == kindData || frame[0]&0x7f == kindDataAck }

// TestGapIsReportedAtOnce loses one of three frames. The missing frame is sent again
// without a timeout: no time passes.
func TestGapIsReportedAtOnce(t *testing.T) {
	p := newPair(t)
	n := 0
	p.drop = func(from int, frame []byte) bool {
		if !isData(frame) {
			return false
		}
		n++
		return n == 2
	}
	for i := range 3 {
		p.send(0, 100, fmt.Append(nil, i))
		p.settle()
		p.now++
	}
	if len(p.got[1]) != 3 {
		t.Errorf("%d messages without a timeout, want 3", len(p.got[1]))
	}
	if v := p.ends[0].Stats(); v.FramesResent != 1 || v.Timeouts != 0 {
		t.Errorf("%d frames were sent again and %d timeouts, want 1 and 0", v.FramesResent, v.Timeouts)
	}
}

// TestTimeoutsGrow loses everything. The delays between repetitions double up to retry.max,
// and only one frame is repeated each time.
func TestTimeoutsGrow(t *testing.T) {
	p := newPair(t)
	p.drop = func(int, []byte) bool { return true }
	for i := range 100 {
		p.send(0, 100, fmt.Append(nil, i))
		p.settle()
	}
	last := p.now
	var delays []time.Duration
	for range 10 {
		before := p.ends[0].Stats().FramesResent
		p.wait()
		delays = append(delays, p.now-last)
		last = p.now
		if n := p.ends[0].Stats().FramesResent - before; n != 1 {
			t.Fatalf("%d frames after a timeout, want 1", n)
		}
	}
	for i, d := range delays {
		want := min(time.Second<<i, session.RetryMaxDefault)
		if d < want || d > want*5/4 {
			t.Errorf("delay %d is %v, want %v and up to a quarter more", i, d, want)
		}
	}
	p.drop = nil
	p.ends[0].Connected(p.now, false)
	p.ends[0].Connected(p.now, true)
	p.settle()
	if len(p.got[1]) != 100 {
		t.Errorf("%d messages after the connection is back, want 100", len(p.got[1]))
	}
}

// TestTimeoutFollowsRoundTrip measures a round trip of 1 ms and loses the next frame.
func TestTimeoutFollowsRoundTrip(t *testing.T) {
	p := newPair(t)
	for range 20 {
		p.send(0, 100, []byte("a"))
		f := p.ends[0].Frame(p.now)
		p.now += time.Millisecond
		p.got[1], _ = p.ends[1].Receive(p.now, f, nil)
		at, _ := p.ends[1].Next()
		if d := at - p.now; d <= 0 || d > 5*time.Millisecond {
			t.Fatalf("an acknowledgement waits %v, want up to 5 ms", d)
		}
		p.now = at
		p.settle()
	}
	if rtt := p.ends[0].Stats().RTT.Round(time.Microsecond); rtt != time.Millisecond {
		t.Errorf("the round trip is %v, want 1ms: the delay of the acknowledgement does not count", rtt)
	}
	p.send(0, 100, []byte("b"))
	p.ends[0].Frame(p.now)
	start := p.now
	p.wait()
	if d := p.now - start; d < session.RetryMinDefault || d > session.RetryMinDefault*5/4 {
		t.Errorf("the frame is sent again after %v, want retry.min", d)
	}
}

// TestIdleSessionIsSilent checks that nothing is due after all messages were acknowledged.
func TestIdleSessionIsSilent(t *testing.T) {
	p := newPair(t)
	p.send(0, 100, []byte("a"))
	p.settle()
	n := 0
	for p.wait() {
		if n++; n > 1 {
			t.Fatal("after the delayed acknowledgement, another deadline")
		}
	}
	before := p.ends[0].Stats().FramesSent + p.ends[1].Stats().FramesSent
	p.now += time.Hour
	p.settle()
	if after := p.ends[0].Stats().FramesSent + p.ends[1].Stats().FramesSent; after != before {
		t.Errorf("%d frames on an idle connection", after-before)
	}
}

// TestSlowLink sends 8 MiB over a link of 1 Mbit/s with a queue without a limit. The
// window alone is 34 s of the link. No frame is lost, so none is sent again, except a few
// before the round trip was measured.
func TestSlowLink(t *testing.T) {
	slowLink(t, newPair(t))
	p := newPair(t)
	for range 100 { // now the round trip is short
		p.send(0, 100, make([]byte, 1))
		p.send(1, 100, make([]byte, 1))
		p.settle()
	}
	slowLink(t, p)
}

func slowLink(t *testing.T, p *pair) {
	t.Helper()
	sent := p.ends[0].Stats().FramesSent
	const perByte = 8 * time.Microsecond
	type inFlight struct {
		at    time.Duration
		to    int
		frame []byte
	}
	var link []inFlight
	var free [2]time.Duration
	for range 128 {
		p.send(0, 100, make([]byte, session.FrameBytesMax))
	}
	for p.ends[0].Stats().Pending > 0 {
		for end, s := range p.ends {
			for f := s.Frame(p.now); f != nil; f = s.Frame(p.now) {
				free[end] = max(free[end], p.now) + time.Duration(len(f))*perByte
				link = append(link, inFlight{free[end], 1 - end, f})
			}
		}
		next := time.Duration(1 << 62)
		for _, s := range p.ends {
			if at, ok := s.Next(); ok {
				next = min(next, at)
			}
		}
		first := -1
		for i, l := range link {
			if l.at <= next {
				first, next = i, l.at
			}
		}
		p.now = next
		if first >= 0 {
			l := link[first]
			link = append(link[:first], link[first+1:]...)
			p.got[l.to], _ = p.ends[l.to].Receive(p.now, l.frame, p.got[l.to][:0])
		}
	}
	if v := p.ends[0].Stats(); v.FramesResent > 4 || v.FramesSent-sent > 150 {
		t.Errorf("%d frames were sent again, %d in total", v.FramesResent, v.FramesSent-sent)
	} else {
		t.Logf("%d frames were sent again, %d in total", v.FramesResent, v.FramesSent-sent)
	}
}

// TestUnreachablePeer checks that nothing is sent while the peer cannot be reached, and
// that everything is sent at once when it is back.
func TestUnreachablePeer(t *testing.T) {
	p := newPair(t)
	p.ends[0].Connected(p.now, false)
	for i := range 100 {
		p.send(0, 100, fmt.Append(nil, i))
	}
	if f := p.ends[0].Frame(p.now); f != nil {
		t.Errorf("a frame of %d bytes to a peer that cannot be reached", len(f))
	}
	if at, ok := p.ends[0].Next(); ok {
		t.Errorf("a deadline at %v", at)
	}
	p.send(1, 100, []byte("answer"))
	p.settle()
	for p.wait() { // the acknowledgement is an answer
	}
	if v := p.ends[1].Stats(); v.Pending != 0 || v.Timeouts != 0 {
		t.Errorf("a message of the peer was not acknowledged: %+v", v)
	}
	p.now += time.Hour
	p.ends[0].Connected(p.now, true)
	p.settle()
	if len(p.got[1]) != 100 {
		t.Errorf("%d messages, want 100", len(p.got[1]))
	}
}

// TestWindow stops sending at the limits of the window.
func TestWindow(t *testing.T) {
	p := newPair(t)
	for range 2000 {
		p.send(0, 100, make([]byte, 1))
		p.ends[0].Frame(p.now)
	}
	if n := p.ends[0].Stats().UnackedFrames; n != session.WindowFrames {
		t.Errorf("%d frames in flight, want %d", n, session.WindowFrames)
	}
	p = newPair(t)
	for range 1000 {
		p.send(0, 100, make([]byte, 16<<10))
	}
	for p.ends[0].Frame(p.now) != nil {
	}
	if n := p.ends[0].Stats().UnackedBytes; n < session.WindowBytes || n > session.WindowBytes+session.FrameBytesMax {
		t.Errorf("%d bytes in flight, want %d and at most a frame more", n, session.WindowBytes)
	}
}

// TestPauseOfThePeer lets the peer answer after a minute, because its process was stopped,
// and loses the next frame. The frame is repeated after retry.max at the latest.
func TestPauseOfThePeer(t *testing.T) {
	p := newPair(t)
	p.send(0, 100, []byte("a"))
	f := p.ends[0].Frame(p.now)
	p.now += time.Minute
	p.got[1], _ = p.ends[1].Receive(p.now, f, nil)
	p.now, _ = p.ends[1].Next()
	p.pass(1) // the acknowledgement
	if v := p.ends[0].Stats(); v.RTT < time.Second || v.Pending > 0 {
		t.Fatalf("the round trip is %v and %d messages are pending, want more than a second and 0", v.RTT, v.Pending)
	}
	p.send(0, 100, []byte("b"))
	p.ends[0].Frame(p.now)
	start := p.now
	p.wait()
	if d := p.now - start; d > session.RetryMaxDefault*5/4 {
		t.Errorf("the frame is sent again after %v, want retry.max and up to a quarter more", d)
	}
}
