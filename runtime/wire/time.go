package wire

import "time"

// AppendTime appends a time as google.protobuf.Timestamp, without tag and length. The
// caller must omit the zero Time.
func AppendTime(b []byte, t time.Time) []byte {
	return appendPair(b, t.Unix(), t.Nanosecond())
}

// AppendDuration appends a duration as google.protobuf.Duration.
func AppendDuration(b []byte, d time.Duration) []byte {
	return appendPair(b, int64(d/time.Second), int(d%time.Second))
}

// appendPair appends int64 seconds = 1 and int32 nanos = 2. They are not
// zigzag-encoded.
func appendPair(b []byte, seconds int64, nanos int) []byte {
	if seconds != 0 {
		b = AppendUint(append(b, 1<<3), uint64(seconds))
	}
	if nanos != 0 {
		b = AppendUint(append(b, 2<<3), uint64(nanos))
	}
	return b
}

// Time reads a google.protobuf.Timestamp and returns it in UTC.
func Time(r *Reader, t *time.Time) {
	if seconds, nanos := pair(r); r.err == nil {
		*t = time.Unix(seconds, nanos).UTC()
	}
}

// Duration reads a google.protobuf.Duration.
func Duration(r *Reader, d *time.Duration) {
	seconds, nanos := pair(r)
	if *d = time.Duration(seconds)*time.Second + time.Duration(nanos); int64(*d/time.Second) != seconds || int64(*d%time.Second) != nanos {
		r.Within(ErrRange)
	}
}

func pair(r *Reader) (seconds, nanos int64) {
	p := Read(r.Message())
	for p.Next() {
		switch p.Tag {
		case 1 << 3:
			seconds = int64(p.varint())
		case 2 << 3:
			nanos = int64(int32(p.varint())) // the type has 32 bits, but 64 are sent
			if nanos <= -1e9 || nanos >= 1e9 {
				p.fail(ErrRange)
			}
		default:
			p.Skip()
		}
	}
	r.Within(p.End("", "1 seconds 2 nanos"))
	return seconds, nanos
}
