package disksim

import "os"

// A content is what a file has. Copies share their pages until one of them changes, because
// files are large and most of their pages stay the same.
type content struct {
	pages  []*page // nil: zeros
	length int
}

type page [PageBytes]byte

var zeroPage page

// clone returns a copy.
func (c *content) clone() content { return content{append([]*page(nil), c.pages...), c.length} }

// resize changes the length.
func (c *content) resize(n int) {
	pages := (n + PageBytes - 1) / PageBytes
	for len(c.pages) < pages {
		c.pages = append(c.pages, nil)
	}
	c.pages = c.pages[:pages]
	if n < c.length && n%PageBytes > 0 { // the rest of the last page must not come back
		last := *c.page(pages - 1)
		clear(last[n%PageBytes:])
		c.pages[pages-1] = &last
	}
	c.length = n
}

// apply carries out a write.
func (c *content) apply(w write) {
	if w.data == nil {
		c.resize(w.at)
		return
	}
	if end := w.at + len(w.data); end > c.length {
		c.resize(end)
	}
	for at, data := w.at, w.data; len(data) > 0; {
		changed := *c.page(at / PageBytes)
		n := copy(changed[at%PageBytes:], data)
		c.pages[at/PageBytes] = &changed
		at, data = at+n, data[n:]
	}
}

// page returns a page, which the caller must not change.
func (c *content) page(i int) *page {
	if i >= len(c.pages) || c.pages[i] == nil {
		return &zeroPage
	}
	return c.pages[i]
}

// at returns the bytes at a position, up to the end of their page.
func (c *content) at(at int) []byte { return c.page(at / PageBytes)[at%PageBytes:] }

// write changes a file from the content before to this one.
func (c *content) write(path string, before *content) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	for i := range c.pages {
		if p := c.page(i); err == nil && p != before.page(i) {
			_, err = f.WriteAt(p[:], int64(i)*PageBytes)
		}
	}
	if err == nil {
		err = f.Truncate(int64(c.length))
	}
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}
