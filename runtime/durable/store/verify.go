package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/topogen/topogen/runtime/durable/core"
)

// A Report is the result of reading a whole store.
type Report struct {
	ID      string // the identity of the store
	Bytes   int64  // the length of the file
	Pages   int64  // in use, of 4096 bytes
	Free    int64  // of these, pages that will be used again
	Commits uint64 // the number of the last commit
	Records [Tables]uint64
	Damage  []*DamageError // the first damageMax; empty: the store is intact
}

// damageMax limits a report. A file of another program has an error on every page.
const damageMax = 100

// depthMax limits the depth of a tree of pages. A tree with pages of 4096 bytes and the
// longest keys (one for each page) has this depth after 2^40 records.
const depthMax = 40

// nodeBytesMax limits a page with the pages that continue it: bbolt splits a page into parts
// of at least two elements, and leaves up to four in the last one. The list of free pages has 8
// bytes for each page instead.
const nodeBytesMax = 4 * (KeyBytesMax + ValueBytesMax + 1<<10)

// fileBytesMax limits a file. It bounds the memory of a verifier: 128 MiB for the pages that
// were reached.
const fileBytesMax = 4 << 40

// errTooMuchDamage ends a walk.
var errTooMuchDamage = errors.New("too much damage")

// verifier reads the state of one commit, page by page, and never follows a number that it
// has not checked. bbolt maps the file and trusts it, so that a damaged page can end the
// process. That is why a verifier reads the file before bbolt opens it.
type verifier struct {
	path   string
	file   io.ReaderAt
	meta   meta
	used   []uint64             // a bit for each page that was reached
	pages  [depthMax + 1][]byte // the pages from the root of a bucket to the current one
	report Report
	totals totals // of the records that were read
	want   totals // as the last commit wrote them
	commit uint64 // that wrote want
	format *format
}

// verify reads the file of a store, which has size bytes. The error is not nil if the file is
// not a store of this format or cannot be read. Damage is in the report.
func verify(path string, file io.ReaderAt, size int64) (Report, error) {
	m, err := readMeta(path, file, size)
	if damage, ok := errors.AsType[*DamageError](err); ok {
		return Report{Bytes: size, Damage: []*DamageError{damage}}, nil
	} else if err != nil {
		return Report{}, err
	}
	defer readAhead(file, int64(m.pages)*pageBytes)()
	v := &verifier{path: path, file: file, meta: m, used: make([]uint64, m.pages/64+1)}
	v.report = Report{Bytes: size, Pages: int64(m.pages), Commits: m.tx}
	v.mark(0, 2)
	err = v.tables()
	if err == nil {
		err = v.free()
	}
	if errors.Is(err, errTooMuchDamage) {
		err = nil
	}
	if err == nil && v.format == nil && len(v.report.Damage) == 0 {
		v.damage(-1, "the description of the format is missing")
	}
	return v.report, err
}

// readMeta returns the meta page of the last commit. A page that is not valid is damage,
// also if the other one is valid: a disk writes the sector of a meta page entirely or not at
// all, so a power failure leaves two valid pages, and the damaged one can be that of the last
// commit.
func readMeta(path string, file io.ReaderAt, size int64) (meta, error) {
	if size > fileBytesMax {
		return meta{}, fmt.Errorf("store: %s has %d bytes, a store has at most %d", path, size, int64(fileBytesMax))
	}
	var pages [2]meta
	var errs [2]error
	for i := range pages {
		page := make([]byte, pageBytes)
		if _, err := file.ReadAt(page, int64(i)*pageBytes); errors.Is(err, io.EOF) {
			errs[i] = errors.New("the file is too short")
		} else if err != nil {
			return meta{}, unreadable(path, uint64(i), err)
		} else if pages[i], errs[i] = parseMeta(page, uint64(i)); errs[i] == nil && pages[i].pages > uint64(size/pageBytes) {
			errs[i] = fmt.Errorf("the file has %d pages of %d: its end is missing", size/pageBytes, pages[i].pages)
		}
		if errors.Is(errs[i], ErrFormat) || errors.Is(errs[i], ErrNotAStore) {
			return meta{}, fmt.Errorf("store: %s: %w", path, errs[i])
		}
	}
	newest := 0
	if errs[0] != nil || errs[1] == nil && pages[1].tx > pages[0].tx {
		newest = 1
	}
	other := 1 - newest
	switch {
	case errs[newest] != nil && !startsLikeMeta(file):
		return meta{}, fmt.Errorf("store: %s is %w: %v", path, ErrNotAStore, errs[newest])
	case errs[newest] != nil:
		return meta{}, &DamageError{Path: path, Page: 0, Reason: errs[0].Error() + ", and so is page 1"}
	case errs[other] != nil:
		return meta{}, &DamageError{Path: path, Page: int64(other), Reason: fmt.Sprintf("%v. The page may be that of the last commit; the other page has commit %d", errs[other], pages[newest].tx)}
	}
	return pages[newest], nil
}

// startsLikeMeta reports whether a file begins as the files of bbolt do.
func startsLikeMeta(file io.ReaderAt) bool {
	head := make([]byte, headBytes+4)
	_, err := file.ReadAt(head, 0)
	return err == nil && order.Uint32(head[headBytes:]) == bboltMagic
}

// damage adds a damage of a page to the report.
func (v *verifier) damage(page int64, reason string) {
	v.add(&DamageError{Path: v.path, Page: page, Reason: reason})
}

func (v *verifier) add(d *DamageError) {
	if len(v.report.Damage) < damageMax {
		v.report.Damage = append(v.report.Damage, d)
	}
}

// mark notes that n pages were reached. It returns the first one that was reached before.
func (v *verifier) mark(page, n uint64) (uint64, bool) {
	for p := page; p < page+n; p++ {
		if v.reached(p) {
			return p, false
		}
		v.used[p/64] |= 1 << (p % 64)
	}
	return 0, true
}

func (v *verifier) reached(p uint64) bool { return v.used[p/64]&(1<<(p%64)) != 0 }

// read reads a page with the pages that continue it, and marks them. It returns nil after
// it has reported damage. The result is valid until the next read of the same depth.
func (v *verifier) read(number uint64, depth int) ([]byte, error) {
	if number < 2 || number >= v.meta.pages {
		v.damage(-1, fmt.Sprintf("a reference leads to page %d of %d", number, v.meta.pages))
		return nil, nil
	}
	page := slices.Grow(v.pages[depth][:0], pageBytes)[:pageBytes]
	v.pages[depth] = page
	if _, err := v.file.ReadAt(page, int64(number)*pageBytes); err != nil {
		return nil, unreadable(v.path, number, err)
	}
	more := uint64(order.Uint32(page[12:]))
	if order.Uint64(page) != number {
		v.damage(int64(number), fmt.Sprintf("the page says that it is page %d", order.Uint64(page)))
		return nil, nil
	}
	if more > max(nodeBytesMax, 8*v.meta.pages)/pageBytes {
		v.damage(int64(number), fmt.Sprintf("the page continues for %d pages, more than a page of a store", more))
		return nil, nil
	}
	if more >= v.meta.pages-number {
		v.damage(int64(number), fmt.Sprintf("the page continues for %d pages, past the end of the file", more))
		return nil, nil
	}
	if p, ok := v.mark(number, 1+more); !ok {
		v.damage(int64(p), "two references lead to the page")
		return nil, nil
	}
	if more > 0 {
		page = slices.Grow(page, int(more)*pageBytes)[:int(1+more)*pageBytes]
		v.pages[depth] = page
		if _, err := v.file.ReadAt(page, int64(number)*pageBytes); err != nil {
			return nil, unreadable(v.path, number, err)
		}
	}
	return page, nil
}

// unreadable returns the error of a read. It is not damage, and the file may be intact.
func unreadable(path string, page uint64, err error) error {
	return fmt.Errorf("store: cannot read page %d (offset %d) of %s, so it is unknown whether the store is intact: %w", page, page*pageBytes, path, err)
}

// tables reads the root bucket, and then all tables.
func (v *verifier) tables() error {
	type bucket struct {
		page        uint64
		name, value []byte
	}
	var buckets []bucket
	err := v.walk(v.meta.root, 0, nil, nil, func(page uint64, name, value []byte, flags uint32) error {
		if flags != bucketFlag || len(value) < bucketBytes {
			v.damage(int64(page), fmt.Sprintf("%q is not a bucket", shorten(name)))
		} else if len(buckets) > Tables {
			v.damage(int64(page), "the file has more buckets than a store")
			return errTooMuchDamage
		} else {
			buckets = append(buckets, bucket{page, bytes.Clone(name), bytes.Clone(value)})
		}
		return nil
	})
	if err == nil && len(v.report.Damage) == 0 && !slices.ContainsFunc(buckets, func(b bucket) bool { return string(b.name) == metaBucketName }) {
		return fmt.Errorf("store: %s is a file of bbolt, but %w (or its root page %d is an older version of itself)", v.path, ErrNotAStore, v.meta.root)
	}
	for _, b := range buckets {
		f := v.metaRecord
		if t, ok := tableOf(b.name); ok {
			f = v.record(t)
		} else if string(b.name) != metaBucketName {
			v.damage(int64(b.page), fmt.Sprintf("the bucket %q does not belong to a store", shorten(b.name)))
			continue
		}
		if err == nil {
			err = v.bucket(b.page, b.value, f)
		}
	}
	if err != nil {
		return err
	}
	if v.format == nil { // another program's file, or damage that is in the report
		return nil
	}
	if reason := v.meta.mismatch(*v.format, v.commit); reason != "" && len(v.report.Damage) == 0 {
		v.damage(int64(v.meta.root), reason)
	}
	for t, got := range v.totals {
		v.report.Records[t] = got.count
		if want := v.want[t]; got != want && len(v.report.Damage) == 0 {
			v.add(&DamageError{Path: v.path, Page: -1, Reason: fmt.Sprintf("table %d has %d records, the last commit wrote %d, or a record is an older version of itself", t, got.count, want.count)})
		}
	}
	return nil
}

// bucket walks a bucket, whose pages are elsewhere or inside the value.
func (v *verifier) bucket(page uint64, value []byte, f func(page uint64, key, value []byte, flags uint32) error) error {
	if root := order.Uint64(value); root != 0 {
		return v.walk(root, 0, nil, nil, f)
	}
	n, err := parseNode(value[bucketBytes:])
	if err == nil && !n.leaf {
		err = errors.New("a bucket inside a page must be a leaf")
	}
	if err != nil {
		v.damage(int64(page), err.Error())
		return nil
	}
	return v.elements(page, n, nil, nil, f)
}

// walk calls f for each element of the leaves below a page. All keys are at or above
// from and below to, where nil means no limit.
func (v *verifier) walk(number uint64, depth int, from, to []byte, f func(page uint64, key, value []byte, flags uint32) error) error {
	data, err := v.read(number, depth)
	if data == nil {
		return err
	}
	n, err := parseNode(data)
	if err == nil && depth == depthMax && !n.leaf {
		err = fmt.Errorf("the tree is deeper than %d pages", depthMax)
	}
	if err != nil {
		v.damage(int64(number), err.Error())
		return nil
	}
	if n.leaf {
		return v.elements(number, n, from, to, f)
	}
	if !v.sorted(number, n, from, to) {
		return nil
	}
	for i := range n.count {
		next := to
		if i+1 < n.count {
			next = n.key(i + 1)
		}
		if err := v.walk(n.child(i), depth+1, n.key(i), next, f); err != nil {
			return err
		}
	}
	return nil
}

// elements calls f for each element of a leaf.
func (v *verifier) elements(number uint64, n node, from, to []byte, f func(page uint64, key, value []byte, flags uint32) error) error {
	if !v.sorted(number, n, from, to) {
		return nil
	}
	for i := range n.count {
		if err := f(number, n.key(i), n.value(i), n.flags(i)); err != nil {
			return err
		}
	}
	if len(v.report.Damage) == damageMax {
		return errTooMuchDamage
	}
	return nil
}

// sorted reports whether the keys of a page ascend between the limits.
func (v *verifier) sorted(number uint64, n node, from, to []byte) bool {
	for i := range n.count {
		key := n.key(i)
		if i == 0 && bytes.Compare(key, from) < 0 || i > 0 && bytes.Compare(key, n.key(i-1)) <= 0 || to != nil && bytes.Compare(key, to) >= 0 {
			v.damage(int64(number), fmt.Sprintf("the key %q is not in order", shorten(key)))
			return false
		}
	}
	return true
}

// record returns a function that checks the records of a table.
func (v *verifier) record(t core.Table) func(uint64, []byte, []byte, uint32) error {
	return func(page uint64, key, value []byte, flags uint32) error {
		_, s, err := stored(t, key, value)
		if err == nil && flags != 0 {
			err = fmt.Errorf("the record has the flags %#x", flags)
		}
		if err != nil {
			v.add(&DamageError{Path: v.path, Page: int64(page), Table: t, Key: bytes.Clone(key), Reason: err.Error()})
			return nil
		}
		v.totals[t].add(s)
		return nil
	}
}

// metaRecord checks a record of the meta bucket.
func (v *verifier) metaRecord(page uint64, key, value []byte, _ uint32) error {
	var err error
	switch string(key) {
	case formatKey:
		var f format
		if f, err = decodeFormat(value); errors.Is(err, ErrFormat) || errors.Is(err, ErrNotAStore) {
			return fmt.Errorf("store: %s: %w", v.path, err)
		} else if err == nil {
			v.format = &f
			v.report.ID = f.ID
		}
	case totalsKey:
		v.want, v.commit, err = decodeTotals(value)
	default:
		err = fmt.Errorf("the meta bucket has the unknown key %q", shorten(key))
	}
	if err != nil {
		v.damage(int64(page), err.Error())
	}
	return nil
}

// free reads the list of free pages. Each page is in use or free, and not both.
func (v *verifier) free() error {
	if len(v.report.Damage) > 0 || v.meta.freelist == noFreelist {
		return nil // pages below damage were not reached
	}
	data, err := v.read(v.meta.freelist, 0)
	if data == nil {
		return err
	}
	number := int64(v.meta.freelist)
	count, ids := uint64(order.Uint16(data[10:])), data[headBytes:]
	if count == 0xFFFF { // the count is in the first element
		count, ids = order.Uint64(ids), ids[8:]
	}
	if order.Uint16(data[8:]) != freelistFlag || count > uint64(len(ids)/8) {
		v.damage(number, "the list of free pages is damaged")
		return nil
	}
	for i := range count {
		p := order.Uint64(ids[8*i:])
		if p < 2 || p >= v.meta.pages {
			v.damage(number, fmt.Sprintf("the list of free pages has page %d of %d", p, v.meta.pages))
			return nil
		}
		if _, ok := v.mark(p, 1); !ok {
			v.damage(number, fmt.Sprintf("the list of free pages has page %d, which is in use or listed twice", p))
			return nil
		}
	}
	v.report.Free = int64(count)
	for p := range v.meta.pages {
		if !v.reached(p) {
			v.damage(int64(p), "the page is neither in use nor free")
			return nil
		}
	}
	return nil
}
