package main

// Pages owns some of the pages. `key: Page` sends all surfers of a page to the same
// instance, so no locks are needed.
type Pages struct {
	pages map[int]*page // by number
}

type page struct {
	links  []int
	visits int
}

// ReceiveSurfer counts the visit and sends the surfer to the next page. One message
// causes at most one other message. If one message caused several messages in a cycle,
// Run would end with an error.
func (p *Pages) ReceiveSurfer(m Surfer, out *PagesSender) {
	page := p.page(m.Page)
	page.visits++
	if m.follow(page.links) {
		out.SendSurfer(m) // the generated sender chooses the instance that owns the page
	}
}

func (p *Pages) page(number int) *page {
	known := p.pages[number]
	if known == nil {
		if p.pages == nil {
			p.pages = make(map[int]*page)
		}
		known = &page{links: linksOf(number)}
		p.pages[number] = known
	}
	return known
}

// Finish is called when the source is done, and no surfer is in a queue or in a handler
// of any instance. The handlers do not have to detect this.
func (p *Pages) Finish(out *PagesSender) {
	for number, page := range p.pages {
		out.SendVisits(Visits{number, page.visits})
	}
}
