package crawl

import (
	"container/list"
	"context"
	"sync"
	"sync/atomic"
)

type PointerInField struct{ last *Page }

func (p *PointerInField) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	p.last = m // want `message pointer m is stored in field last of PointerInField, but it is valid only until ReceivePage returns \(copy the message: \*m\)`
	return nil
}

type PointerInSlice struct{ batch []*Page }

func (p *PointerInSlice) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	p.batch = append(p.batch, m) // want `message pointer m is stored in field batch of PointerInSlice`
	if len(p.batch) == 100 {
		p.batch = nil
	}
	return nil
}

type PointerInMap struct{ byURL map[string]*Page }

func (p *PointerInMap) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	p.byURL[m.URL] = m // want `message pointer m is stored in field byURL`
	delete(p.byURL, "oldest")
	return nil
}

type PointerAsKey struct{ seen map[*Page]bool }

func (p *PointerAsKey) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	p.seen[m] = true // want `message pointer m is stored in field seen`
	return nil
}

type PointerInSliceOfMap struct{ byHost map[string][]*Page }

func (p *PointerInSliceOfMap) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	p.byHost[m.URL] = append(p.byHost[m.URL], m) // want `message pointer m is stored in field byHost`
	return nil
}

type job struct {
	page  *Page
	tries int
}

type PointerInStruct struct{ jobs []job }

func (p *PointerInStruct) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	p.jobs = append(p.jobs, job{page: m}) // want `message pointer m is stored in field jobs`
	return nil
}

type PointerThroughLocal struct{ current *job }

func (p *PointerThroughLocal) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	j := &job{tries: 1}
	j.page = m
	for range 3 {
		j.tries++
	}
	p.current = j // want `message pointer m is stored in field current`
	return nil
}

type PointerThroughPhi struct{ best *Page }

func (p *PointerThroughPhi) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	best := p.best
	if best == nil || m.Size > best.Size {
		best = m
	}
	p.best = best // want `message pointer m is stored in field best`
	return nil
}

type AddressOfPart struct {
	meta *Meta
	head []byte
}

func (p *AddressOfPart) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	p.meta = &m.Meta   // want `message pointer m is stored in field meta`
	p.head = m.Head[:] // want `message pointer m is stored in field head`
	return nil
}

var lastPage *Page

var pages sync.Map

type PointerInGlobal struct{}

func (p *PointerInGlobal) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	lastPage = m          // want `message pointer m is stored in the package variable lastPage`
	pages.Store(m.URL, m) // want `message pointer m is stored in the package variable pages`
	return nil
}

type PointerInContainer struct {
	last  atomic.Pointer[Page]
	any   atomic.Value
	queue list.List
	inner struct{ deep *Page }
}

func (p *PointerInContainer) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	p.last.Store(m)     // want `message pointer m is stored in field last`
	p.any.Store(m)      // want `message pointer m is stored in field any`
	p.queue.PushBack(m) // want `message pointer m is stored in field queue`
	p.inner.deep = m    // want `message pointer m is stored in field deep`
	return nil
}

type Closure struct{ later []func() }

func (p *Closure) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	p.later = append(p.later, func() { // want `message pointer m is stored in field later`
		println(m.URL)
	})
	return nil
}

type MethodValue struct{ body func() []byte }

func (p *MethodValue) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	p.body = m.Bytes // want `message pointer m is stored in field body`
	return nil
}

type MethodThatReturnsSelf struct{ last *Page }

func (p *MethodThatReturnsSelf) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	p.last = m.Self() // want `message pointer m is stored in field last`
	return nil
}

type InterfaceHolds struct{ last any }

func (p *InterfaceHolds) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	p.last = m // want `message pointer m is stored in field last`
	return nil
}

type WholeReceiver struct{ last *Page }

func (p *WholeReceiver) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	*p = WholeReceiver{last: m} // want `message pointer m is stored in`
	return nil
}

type Copies struct {
	last  Page
	ptr   *Page
	list  []Page
	byURL map[string]Page
	body  []byte
	links []string
	next  *Page
	head  [16]byte
	meta  *Meta
	url   string
}

func (p *Copies) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	p.last = *m
	c := *m
	p.ptr = &c
	p.list = append(p.list, *m)
	p.byURL[m.URL] = *m
	p.body = m.Body
	p.links = append(p.links, m.Links...)
	p.next = m.Next
	p.head = m.Head
	meta := m.Meta
	p.meta = &meta
	p.url = m.URL
	p.ptr = m.Clone()
	p.body = append(p.body, m.Head[:]...)
	copy(p.body, m.Head[:])
	p.body = m.Bytes()
	p.body = append([]byte(nil), m.Head[:]...)
	p.url = string(m.Head[:])
	return nil
}

type Locals struct {
	count int
	sizes []int
	prev  *Page
}

func (p *Locals) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	all := []*Page{m, m.Next}
	byURL := map[string]*Page{m.URL: m}
	j := job{page: m}
	k := &j
	k.page = m
	for _, page := range all {
		p.count += page.Size
		p.sizes = append(p.sizes, page.Size)
	}
	for _, page := range byURL {
		p.count += page.Size
	}
	st := &struct{ cur, prev *Page }{cur: m, prev: p.prev}
	p.prev = st.prev
	p.count += st.cur.Size
	return nil
}

type ResetBeforeReturn struct {
	cur      *Page
	inFlight map[*Page]bool
}

func (p *ResetBeforeReturn) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	p.cur = m
	defer func() { p.cur = nil }()
	p.inFlight[m] = true
	defer delete(p.inFlight, m)
	p.count()
	return nil
}

func (p *ResetBeforeReturn) count() {}

type ResetAtTheEnd struct{ cur *Page }

func (p *ResetAtTheEnd) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	p.cur = m
	if m.Size > 10 {
		p.work()
	}
	p.cur = nil
	return nil
}

func (p *ResetAtTheEnd) work() {}

type ResetAtEachReturn struct {
	cur     *Page
	scratch []*Page
}

func (p *ResetAtEachReturn) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	p.cur = m
	p.scratch = append(p.scratch[:0], m)
	if m.Size > 10 {
		clear(p.scratch)
		p.cur = nil
		return nil
	}
	if m.Size < 0 {
		p.cur = m.Next
	}
	p.work()
	clear(p.scratch)
	p.cur = nil
	return nil
}

func (p *ResetAtEachReturn) work() {}

type ResetTooEarly struct{ cur *Page }

func (p *ResetTooEarly) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	p.cur = nil
	if m.Size > 10 {
		p.cur = m // want `message pointer m is stored in field cur`
	}
	return nil
}

type ResetSometimes struct{ cur *Page }

func (p *ResetSometimes) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	p.cur = m // want `message pointer m is stored in field cur`
	if m.Size > 10 {
		p.cur = nil
	}
	return nil
}

type ValueReceiver struct{ last *Page }

func (p ValueReceiver) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	p.last = m
	return nil
}

type result struct{ size int }

type PointerIsLocalKey struct{ results []*result }

func (p *PointerIsLocalKey) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	byPage := make(map[*Page]*result)
	byPage[m] = &result{m.Size}
	for _, r := range byPage {
		p.results = append(p.results, r)
	}
	p.results = append(p.results, byPage[m])
	mixed := []any{m, &result{m.Size}}
	for _, x := range mixed {
		if r, ok := x.(*result); ok {
			p.results = append(p.results, r)
		}
	}
	return nil
}

type LocalKeyIsKept struct{ pages []*Page }

func (p *LocalKeyIsKept) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	seen := map[*Page]bool{m: true}
	for page := range seen {
		p.pages = append(p.pages, page) // want `message pointer m is stored in field pages`
	}
	return nil
}

type Owned struct{ last *Lines }

func (o *Owned) ReceiveLines(m *Lines) { o.last = m }

type Scratch struct {
	scratch []Page
	sum     int
}

func (p *Scratch) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	p.scratch = p.scratch[:0]
	for next := m; next != nil; next = next.Next {
		p.scratch = append(p.scratch, *next)
	}
	m.Size = len(p.scratch)
	m.Next = nil
	return nil
}

type ReplyHoldsPointer struct{}

func (r *ReplyHoldsPointer) ReceiveQuote(m *Quote) Price {
	return Price{Item: &m.Item} // want `message pointer m is returned`
}

type ReplyCopies struct{}

func (r *ReplyCopies) ReceiveQuote(m *Quote) Price {
	item := m.Item
	return Price{Item: &item, Cents: len(m.Item.Name)}
}

type PointerOnChannel struct{ work chan *Page }

func (p *PointerOnChannel) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	p.work <- m // want `message pointer m is sent on a channel`
	select {
	case p.work <- m: // want `message pointer m is sent on a channel`
	case <-ctx.Done():
	}
	return nil
}

type CopyOnChannel struct{ work chan Page }

func (p *CopyOnChannel) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	p.work <- *m
	return nil
}

type PointerInMessage struct{}

func (p *PointerInMessage) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	out.SendPage(*m)
	out.SendRef(Ref{Page: m.Next})
	out.SendRef(Ref{Page: m}) // want `message pointer m is sent as a part of another message`
	return nil
}

type PointerInMessageOfInterface struct{}

func (p *PointerInMessageOfInterface) ReceivePage(m *Page, out interface{ SendRef(Ref) }) {
	out.SendRef(Ref{Page: m}) // want `message pointer m is sent as a part of another message`
	out.SendRef(Ref{Page: m.Next})
	relay(m, out) // want `message pointer m is sent as a part of another message by relay \(fields.go:\d+\)`
}

func relay(m *Page, to interface{ SendRef(Ref) }) { to.SendRef(Ref{Page: m}) }
