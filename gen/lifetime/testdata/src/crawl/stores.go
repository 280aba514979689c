package crawl

import "context"

// The analysis must report the instruction that stores the message. It must not report the
// instruction before it, which stores the new map, slice, struct or channel.

type NewMap struct{ bySize map[int]*Page }

func (p *NewMap) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	if p.bySize == nil {
		p.bySize = make(map[int]*Page)
	}
	p.bySize[m.Size] = m // want `message pointer m is stored in field bySize of NewMap`
	return nil
}

type NewKeys struct{ sizes map[*Page]int }

func (p *NewKeys) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	p.sizes = make(map[*Page]int)
	p.sizes[m] = m.Size // want `message pointer m is stored in field sizes of NewKeys`
	return nil
}

type NewSlice struct{ slots []*Page }

func (p *NewSlice) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	p.slots = make([]*Page, 4)
	p.slots[0] = m // want `message pointer m is stored in field slots of NewSlice`
	return nil
}

type NewList struct{ list []*Page }

func (p *NewList) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	p.list = make([]*Page, 0, 4)
	p.list = append(p.list, m) // want `message pointer m is stored in field list of NewList`
	return nil
}

type slot struct{ page *Page }

type NewSlot struct{ slot *slot }

func (p *NewSlot) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	p.slot = new(slot)
	p.slot.page = m // want `message pointer m is stored in field page of slot`
	return nil
}

type NewSlots struct{ slots []slot }

func (p *NewSlots) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	p.slots = make([]slot, 4)
	p.slots[0] = slot{page: m} // want `message pointer m is stored in field slots of NewSlots`
	return nil
}

type CopiedList struct{ list []*Page }

func (p *CopiedList) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	p.list = make([]*Page, 4)
	copy(p.list, []*Page{m}) // want `message pointer m is stored in field list of CopiedList`
	return nil
}

type NewChannel struct{ pages chan *Page }

func (p *NewChannel) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	p.pages = make(chan *Page, 1)
	p.pages <- m // want `message pointer m is sent on a channel`
	return nil
}

var bySize map[int]*Page

type NewGlobal struct{}

func (p *NewGlobal) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	bySize = make(map[int]*Page)
	bySize[m.Size] = m // want `message pointer m is stored in the package variable bySize`
	return nil
}

type NewInHelper struct{ bySize map[int]*Page }

func (p *NewInHelper) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	p.bySize = make(map[int]*Page)
	p.put(m) // want `message pointer m is stored in field bySize of NewInHelper by put`
	return nil
}

func (p *NewInHelper) put(m *Page) { p.bySize[m.Size] = m }

type FilledBefore struct{ bySize map[int]*Page }

func (p *FilledBefore) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	fresh := make(map[int]*Page)
	fresh[m.Size] = m
	p.bySize = fresh // want `message pointer m is stored in field bySize of FilledBefore`
	return nil
}

type FilledTwice struct{ bySize map[int]*Page }

func (p *FilledTwice) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	fresh := make(map[int]*Page)
	fresh[0] = m
	p.bySize = fresh // want `message pointer m is stored in field bySize of FilledTwice`
	p.bySize[1] = m  // want `message pointer m is stored in field bySize of FilledTwice`
	return nil
}

type InMessage struct{ last map[int]*Page }

type cached struct{ pages map[int]*Page }

func (p *InMessage) fill(c *cached, m *Page) {
	pages := make(map[int]*Page)
	c.pages = pages
	p.last = pages
	c.pages[0] = m
}

func (p *InMessage) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	p.fill(new(cached), m) // want `message pointer m is stored in field last of InMessage by fill`
	return nil
}
