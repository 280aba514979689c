package memberlist

import (
	"bytes"
	"compress/lzw"
	"encoding/binary"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/transport"
)

// pushPull returns an exchange that announces members and bytes of a user, with bytes after that.
func pushPull(nodes uint32, user uint32, rest ...byte) []byte {
	b := append([]byte{typePushPull, 0x83}, "\xa4Join\xc3\xa5Nodes\xce"...)
	b = binary.BigEndian.AppendUint32(b, nodes)
	b = append(b, "\xacUserStateLen\xce"...)
	b = binary.BigEndian.AppendUint32(b, user)
	return append(b, rest...)
}

// compressed returns a message of type 9 that expands to n zeros.
func compressed(t testing.TB, n int) []byte {
	t.Helper()
	var small bytes.Buffer
	w := lzw.NewWriter(&small, lzw.LSB, 8)
	if _, err := w.Write(make([]byte, n)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	b := append([]byte{9, 0x82}, "\xa4Algo\x00\xa3Buf\xdb"...)
	return append(binary.BigEndian.AppendUint32(b, uint32(small.Len())), small.Bytes()...)
}

// compound returns a packet with parts.
func compound(parts ...[]byte) []byte {
	b := []byte{typeCompound, byte(len(parts))}
	for _, p := range parts {
		b = binary.BigEndian.AppendUint16(b, uint16(len(p)))
	}
	return append(b, bytes.Join(parts, nil)...)
}

// streamOf returns the segments of a stream that a peer opens and leaves open.
func streamOf(number byte, message []byte) (payloads [][]byte) {
	for i := uint32(0); len(message) > 0; i++ {
		n := min(len(message), segmentMax)
		b := append([]byte{payloadStream, flagOpened, 0, 0, 0, 0, 0, 0, 0, number}, 0, 0, 0, 0)
		binary.BigEndian.PutUint32(b[10:], i)
		payloads = append(payloads, append(b, message[:n]...))
		message = message[n:]
	}
	return payloads
}

// TestAnnounced: a member that announces more than it sends costs about what it has sent. The
// library would allocate what is announced.
func TestAnnounced(t *testing.T) {
	bomb := compressed(t, 10<<20)
	for name, payloads := range map[string][][]byte{
		"members":            streamOf(1, pushPull(1<<20, 0)),
		"members that come":  streamOf(1, pushPull(1<<20, 0, bytes.Repeat([]byte{0x80}, 1000)...)),
		"data of a user":     streamOf(1, pushPull(0, 20<<20)),
		"a message of users": streamOf(1, []byte("\x08\x81\xaaUserMsgLen\xce\x01\x40\x00\x00")),
		"compressed":         streamOf(1, bomb),
		"a packet":           {append([]byte{payloadPacket}, bomb[:min(len(bomb), packetMax-1)]...)},
		"a compound packet":  {append([]byte{payloadPacket}, compound(bomb[:min(len(bomb), packetMax-8)])...)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory := transport.NewMemory(transport.MemoryOptions{})
				n1, n2 := start(t, memory, "n1", "n1"), start(t, memory, "n2", "n1")
				time.Sleep(10 * time.Second)
				var sent int
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				for range 8 {
					for _, p := range payloads {
						sent += len(p)
						n2.transport.Send("n1", transport.Message{Group: n1.settings.Group, Payload: p})
					}
					synctest.Wait()
				}
				runtime.ReadMemStats(&after)
				if got, most := after.TotalAlloc-before.TotalAlloc, uint64(10*sent+2<<20); got > most {
					t.Errorf("%d bytes were sent and %d allocated, want at most %d", sent, got, most)
				}
				time.Sleep(10 * time.Second)
				if got := n1.states(); got != "n1 alive, n2 alive" {
					t.Errorf("n1 knows %s", got)
				}
				n1.end(t)
				n2.end(t)
				time.Sleep(time.Minute) // the library does not wait for its goroutines
			})
		})
	}
}

// TestOtherMessages: what no node sends is refused, with its reason.
func TestOtherMessages(t *testing.T) {
	ping := []byte("\x00\x82\xa5SeqNo\x07\xa4Node\xa2n1")
	deep := append([]byte{typePing, 0x81, 0xa1, 'x'}, bytes.Repeat([]byte{0x81, 0xa1, 'x'}, 1000)...)
	node := "\x87\xa4Addr\xb016 bytes of a IP\xabIncarnation\x01\xa4Meta\xa0\xa4Name\xa2n1\xa4Port\x01\xa5State\x00\xa3Vsn\xa6\x01\x05\x02\x00\x00\x00"
	for _, c := range []struct {
		name   string
		packet bool
		b      []byte
		want   string
	}{
		{"ping", true, ping, ""},
		{"ping with its checksum", true, append([]byte{typeCRC, 0, 0, 0, 0}, ping...), ""},
		{"pings", true, compound(ping, ping), ""},
		{"stream with a ping", false, ping, ""},
		{"exchange", false, pushPull(2, 0, []byte(node+node)...), ""},
		{"empty", true, nil, "form"},
		{"compound in a compound one", true, compound(compound(ping)), "got 7 in a packet"},
		{"short compound", true, []byte{typeCompound, 3, 0}, "more bytes"},
		{"short part", true, []byte{typeCompound, 1, 0xff, 0xff, 0}, "more bytes"},
		{"message of a user", true, []byte{8, 1, 2, 3}, "got 8 in a packet"},
		{"exchange in a packet", true, pushPull(0, 0), "got 6 in a packet"},
		{"encrypted", false, []byte{10, 0, 0, 1, 0}, "got 10 in a stream"},
		{"label", false, []byte{244, 1, 'x', 0}, "got 244 in a stream"},
		{"nested", true, deep, "form"},
		{"long text", true, []byte("\x00\x81\xa4Node\xdb\xff\xff\xff\xff"), "more bytes"},
		{"many fields", true, []byte("\x00\xdf\xff\xff\xff\xff"), "form"},
		{"members of one byte", false, pushPull(100, 0, bytes.Repeat([]byte{0x80}, 100)...), "at least 50 bytes"},
		{"negative number of members", false, []byte("\x06\x83\xa4Join\xc3\xa5Nodes\xff\xacUserStateLen\x00"), "more bytes"},
		{"no number of members", false, []byte("\x06\x81\xa4Join\xc3"), "more bytes"},
		{"incomplete", false, ping[:5], "unexpected EOF"},
	} {
		err := checkPacket(c.b)
		if !c.packet {
			err = checkStream(&input{rest: c.b, left: streamMax})
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}
