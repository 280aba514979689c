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

type AppendedBefore struct{ slots []*slot }

func (p *AppendedBefore) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	s := new(slot)
	p.slots = append(p.slots, s)
	p.slots[0].page = m // want `message pointer m is stored in field page of slot`
	return nil
}

type AppendedEmpty struct{ list []*Page }

func (p *AppendedEmpty) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	p.list = append(p.list, nil)
	p.list[len(p.list)-1] = m // want `message pointer m is stored in field list of AppendedEmpty`
	return nil
}

type AppendedSlots struct{ list []slot }

func (p *AppendedSlots) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	p.list = append(p.list, slot{})
	p.list[len(p.list)-1].page = m // want `message pointer m is stored in field page of slot`
	return nil
}

type AppendedTwice struct{ list []*Page }

func (p *AppendedTwice) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	p.list = append(p.list, new(Page))
	p.list = append(p.list, m) // want `message pointer m is stored in field list of AppendedTwice`
	return nil
}

type StoredThenAppended struct{ slots []*slot }

func (p *StoredThenAppended) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	s := new(slot)
	s.page = m
	p.slots = append(p.slots, s) // want `message pointer m is stored in field slots of StoredThenAppended`
	return nil
}

type ListInMap struct{ byHost map[string][]*Page }

func (p *ListInMap) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	p.byHost["a"] = append(append(p.byHost["a"], new(Page)), new(Page))
	p.byHost["b"] = append(p.byHost["b"], m) // want `message pointer m is stored in field byHost of ListInMap`
	return nil
}

type AppendedToEither struct{ list []*Page }

func (p *AppendedToEither) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	list := p.list
	if len(list) == 0 {
		list = []*Page{m}
	}
	p.list = append(list, new(Page)) // want `message pointer m is stored in field list of AppendedToEither`
	return nil
}

type AppendedToScratch struct{ scratch, list []*Page }

func (p *AppendedToScratch) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	defer func() { p.scratch = nil }()
	p.scratch = append(p.scratch, m)
	p.list = append(p.scratch, new(Page)) // want `message pointer m is stored in field list of AppendedToScratch`
	return nil
}

type AppendedToOther struct{ list []*Page }

func (p *AppendedToOther) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	other := new(AppendedToOther)
	other.list = append(other.list, m)
	p.list = append(other.list, new(Page)) // want `message pointer m is stored in field list of AppendedToOther`
	return nil
}
