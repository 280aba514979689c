package store

import "os"

// aheadBytes is how many bytes behind the used pages are written with zeros at a time. One
// of some hundred commits does it, and its sync takes 0.1 ms longer.
const aheadBytes = 256 << 10

var zeros [aheadBytes]byte

// ahead writes zeros behind the pages in use. bbolt extends the file by setting its length,
// so that a new page has no block on the disk. The sync of the first write to it must also
// make the allocation of the block durable, and takes about 1.5 times as long.
type ahead struct {
	end int64 // everything before it is in use, or was written
}

// write writes zeros if few pages behind the used ones were written. No commit may
// be under way. An error is ignored: the commit that needs the space reports it.
func (a *ahead) write(f *os.File, used int64) {
	if used+aheadBytes/2 <= a.end {
		return
	}
	info, err := f.Stat()
	if err != nil {
		return
	}
	from := max(a.end, used)
	if room := min(info.Size()-from, aheadBytes); room > 0 {
		n, _ := f.WriteAt(zeros[:room], from)
		from += int64(n)
	}
	a.end = from
}
