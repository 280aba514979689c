package crawl

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"web"
)

type Helped struct {
	last  *Page
	batch batch
	inner *inner
	table map[string]*inner
	base
}

type inner struct{ page *Page }

type base struct{ kept *Page }

func (b *base) keep(m *Page) { b.kept = m }

type batch struct{ pages []*Page }

func (b *batch) add(m *Page) { b.pages = append(b.pages, m) }

func (b *batch) size() (n int) {
	for _, p := range b.pages {
		n += p.Size
	}
	return n
}

func (p *Helped) remember(m *Page) { p.last = m }

func (p *Helped) outer(m *Page) { p.remember(m) }

func (p *Helped) current() *inner { return p.inner }

func newInner(m *Page) *inner { return &inner{page: m} }

func pick(a, b *Page) *Page {
	if a.Size > b.Size {
		return a
	}
	return b
}

func (p *Helped) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	p.remember(m)            // want `message pointer m is stored in field last of Helped by remember \(helpers.go:\d+\)`
	p.outer(m)               // want `message pointer m is stored in field last of Helped by remember`
	p.keep(m)                // want `message pointer m is stored in field kept of base by keep`
	p.batch.add(m)           // want `message pointer m is stored in field pages of batch by add`
	p.current().page = m     // want `message pointer m is stored in field page of inner`
	p.inner = newInner(m)    // want `message pointer m is stored in field inner`
	p.last = pick(p.last, m) // want `message pointer m is stored in field last`
	p.table["x"].page = m    // want `message pointer m is stored in field page`
	f := p.remember
	f(m)                   // want `message pointer m is stored in field last of Helped by remember`
	publish(m)             // want `message pointer m is stored in the package variable lastPage by publish`
	keepAll(p, []*Page{m}) // want `message pointer m is stored in field last of Helped by keepAll`
	generic(&p.last, m)    // want `message pointer m is stored in`
	return nil
}

func publish(m *Page) { lastPage = m }

func keepAll(p *Helped, list []*Page) {
	for _, m := range list {
		p.last = m
	}
}

func generic[T any](to **T, m *T) { *to = m }

type HelpedLegally struct {
	count int
	last  Page
	log   *web.Logger
	store interface {
		Put(context.Context, *Page) error
	}
	hook func(*Page)
}

func (p *HelpedLegally) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	p.measure(m)
	var b batch
	b.add(m)
	p.count += b.size()
	local := newInner(m)
	p.count += local.page.Size
	p.last = *pick(m, m.Next)
	list := []*Page{m, m.Next}
	slices.SortFunc(list, func(a, b *Page) int { return a.Size - b.Size })
	sort.Slice(list, func(i, j int) bool { return list[i].Size < list[j].Size })
	p.log.Info("page", "page", m)
	fmt.Println(m)
	p.hook(m)
	walk(m, 10)
	if err := p.store.Put(ctx, m); err != nil {
		return fmt.Errorf("page %v: %w", m, err)
	}
	for i, page := range slices.Backward(list) {
		p.count += i + page.Size
	}
	visit(m, func(page *Page) { p.count += page.Size })
	other := generic2(m)
	p.count += other.Size
	return nil
}

func generic2[T any](m *T) *T { return m }

func (p *HelpedLegally) measure(m *Page) { p.count += m.Size }

func walk(m *Page, depth int) {
	if depth > 0 && m.Next != nil {
		walk(m.Next, depth-1)
	}
}

func visit(m *Page, f func(*Page)) { f(m) }

type ErrorHoldsPointer struct{}

type badPage struct{ page *Page }

func (b *badPage) Error() string { return b.page.URL }

func (p *ErrorHoldsPointer) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	if m.Size < 0 {
		return &badPage{m} // want `message pointer m is returned`
	}
	return nil
}

type Embedded struct{ common }

type common struct{ last *Page }

func (c *common) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	c.last = m // want `message pointer m is stored in field last of common`
	return nil
}

type Generic[T any] struct {
	last *Page
	by   T
}

func (g *Generic[T]) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	g.last = m // want `message pointer m is stored in field last of Generic`
	return nil
}

// NotAHandler keeps what is its own: nothing asserts it.
type NotAHandler struct{ last *Page }

func (n *NotAHandler) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	n.last = m
	return nil
}
