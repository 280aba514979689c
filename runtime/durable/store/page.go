package store

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
)

// The format of the files of bbolt, version 2: pages of the byte order of the computer.
// The first two pages are meta pages, of which the one with the higher transaction is
// valid. A page has a head of 16 bytes (number, flags, count, overflow) and elements of 16
// bytes, whose positions are relative to the element.
const (
	pageBytes    = 4096 // of every store, so that a file can move to another computer
	headBytes    = 16
	elementBytes = 16
	metaBytes    = 64
	bucketBytes  = 16 // the root page of a bucket and a sequence number

	branchFlag   = 0x01
	leafFlag     = 0x02
	metaFlag     = 0x04
	freelistFlag = 0x10
	bucketFlag   = 0x01 // of an element: its value is a bucket

	bboltMagic   = 0xED0CDAED
	bboltVersion = 2
	noFreelist   = ^uint64(0)
)

var order = binary.NativeEndian

// A meta is a meta page.
type meta struct {
	root     uint64 // the page of the root bucket
	freelist uint64
	pages    uint64 // the number of pages in use
	tx       uint64
}

// listed reports whether the commit has a list of free pages. That is the commit of Close,
// which has the records of the commit before.
func (m meta) listed() bool { return m.freelist != noFreelist }

// mismatch compares the number of the commit that wrote the totals with that of the meta page.
// They differ if a page that leads to the totals is an older version of itself: it leads to the
// tables of an earlier commit, which are intact. Close makes a commit without changes, so its
// number is one higher. It returns "" if they match.
func (m meta) mismatch(f format, commit uint64) string {
	want := m.tx
	if m.listed() {
		want--
	}
	if f.Version < 2 || commit == want {
		return ""
	}
	return fmt.Sprintf("the tables are those of commit %d, and the meta page is that of commit %d", commit, want)
}

// parseMeta parses meta page number, which is 0 or 1.
func parseMeta(page []byte, number uint64) (meta, error) {
	b := page[headBytes:]
	sum := fnv.New64a()
	_, _ = sum.Write(b[:metaBytes-8]) // never fails
	m := meta{root: order.Uint64(b[16:]), freelist: order.Uint64(b[32:]), pages: order.Uint64(b[40:]), tx: order.Uint64(b[48:])}
	switch {
	case order.Uint32(b) != bboltMagic:
		return m, fmt.Errorf("the page does not begin as a meta page of bbolt")
	case order.Uint32(b[4:]) != bboltVersion:
		return m, fmt.Errorf("the file has version %d of bbolt's format, version %d is supported: %w", order.Uint32(b[4:]), bboltVersion, ErrFormat)
	case order.Uint64(b[56:]) != sum.Sum64():
		return m, fmt.Errorf("the checksum of the meta page is wrong")
	case order.Uint32(b[8:]) != pageBytes:
		return m, fmt.Errorf("the file has pages of %d bytes, a store has pages of %d: %w", order.Uint32(b[8:]), pageBytes, ErrNotAStore)
	case order.Uint64(page) != number || order.Uint16(page[8:]) != metaFlag || m.tx%2 != number:
		return m, fmt.Errorf("the page is not meta page %d", number)
	}
	return m, nil
}

// A node is a branch page, a leaf page, or the page of a bucket that is stored inside a
// leaf.
type node struct {
	data  []byte
	count int
	leaf  bool
}

// parseNode checks that all elements of a page are inside of it and in order.
func parseNode(data []byte) (node, error) {
	if len(data) < headBytes {
		return node{}, fmt.Errorf("the page has %d bytes, too few for its head", len(data))
	}
	flags := order.Uint16(data[8:])
	n := node{data, int(order.Uint16(data[10:])), flags == leafFlag}
	switch {
	case flags != leafFlag && flags != branchFlag:
		return n, fmt.Errorf("the page has the flags %#x, a page of a table has %#x or %#x", flags, leafFlag, branchFlag)
	case headBytes+n.count*elementBytes > len(data):
		return n, fmt.Errorf("%d elements do not fit into the page", n.count)
	case !n.leaf && n.count == 0:
		return n, fmt.Errorf("the branch page is empty")
	}
	// Elements follow each other without a gap, as bbolt writes them.
	end := headBytes + n.count*elementBytes
	for i := range n.count {
		at, key, value := n.layout(i)
		if at != end || key > len(data)-at || value > len(data)-at-key {
			return n, fmt.Errorf("element %d is not in its place", i)
		}
		end = at + key + value
		if key == 0 {
			return n, fmt.Errorf("the key of element %d is empty", i)
		}
	}
	return n, nil
}

// layout returns where the key of an element begins, and the lengths of its key and its
// value.
func (n node) layout(i int) (at, key, value int) {
	element := headBytes + i*elementBytes
	e := n.data[element:]
	if n.leaf {
		return element + int(order.Uint32(e[4:])), int(order.Uint32(e[8:])), int(order.Uint32(e[12:]))
	}
	return element + int(order.Uint32(e)), int(order.Uint32(e[4:])), 0
}

func (n node) key(i int) []byte {
	at, key, _ := n.layout(i)
	return n.data[at : at+key : at+key]
}

func (n node) value(i int) []byte {
	at, key, value := n.layout(i)
	return n.data[at+key : at+key+value : at+key+value]
}

// flags returns the flags of an element of a leaf.
func (n node) flags(i int) uint32 { return order.Uint32(n.data[headBytes+i*elementBytes:]) }

// child returns the page below an element of a branch.
func (n node) child(i int) uint64 { return order.Uint64(n.data[headBytes+i*elementBytes+8:]) }
