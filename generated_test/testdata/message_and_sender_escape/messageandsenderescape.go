// Package messageandsenderescape has handlers that keep what is valid only during their call.
package messageandsenderescape

import (
	"context"
	"sync"

	"github.com/topogen/topogen/generated_test/testdata/message_and_sender_escape/shelf"
)

type Page struct{ Links []string }

type Note struct{ Text string }

type Feed struct{}

func (*Feed) Serve(ctx context.Context, out *FeedSender) error {
	go func() { _ = out.SendPage(Page{}) }()
	<-ctx.Done()
	return nil
}

type Parser struct{ pages []*Page }

func (p *Parser) ReceivePage(ctx context.Context, m *Page, out *ParserSender) {
	p.pages = append(p.pages, m)
	for _, link := range m.Links {
		go func() {
			out.SendRecord(shelf.Record{Name: link})
		}()
	}
	var group sync.WaitGroup
	group.Go(func() { <-ctx.Done() })
}

// Audit is as it should be.
type Audit struct{ last Note }

func (a *Audit) ReceiveNote(m *Note) {
	a.last = *m
	var group sync.WaitGroup
	group.Go(func() { println(m.Text) })
	group.Wait()
}
