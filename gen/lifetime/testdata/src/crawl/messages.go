package crawl

// Page is a message.
type Page struct {
	URL   string
	Size  int
	Head  [16]byte
	Body  []byte
	Links []string
	Meta  Meta
	Next  *Page
}

// Meta is a part of a message.
type Meta struct{ Lang string }

// Bytes is the body.
func (p *Page) Bytes() []byte { return p.Body }

// Self is the page itself.
func (p *Page) Self() *Page { return p }

// Clone is a copy.
func (p *Page) Clone() *Page { c := *p; return &c }

// Ref is a message that points to a page.
type Ref struct{ Page *Page }

// Quote is a message that asks.
type Quote struct{ Item Item }

// Item is what a quote is about.
type Item struct{ Name string }

// Price is a reply.
type Price struct {
	Item  *Item
	Cents int
}

// Lines is a message that is a pointer.
type Lines struct{ List []string }
