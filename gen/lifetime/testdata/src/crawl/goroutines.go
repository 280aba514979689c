package crawl

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/topogen/topogen/runtime/topo"
	"golang.org/x/sync/errgroup"
	"web"
)

type SendsFromGoroutine struct{}

func (p *SendsFromGoroutine) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	url := m.URL
	go func() { // want `sender out is used in another goroutine, but it works only on the goroutine of ReceivePage`
		out.SendPage(Page{URL: url})
	}()
	go out.SendPage(*m)        // want `sender out is used in another goroutine`
	go deliver(out, Page{})    // want `sender out is used in another goroutine`
	time.AfterFunc(1, func() { // want `sender out is used in another goroutine`
		out.SendPage(Page{})
	})
	return nil
}

func deliver(out *PageSender, p Page) { out.SendPage(p) }

type SendsFromJoinedGoroutine struct{}

func (p *SendsFromJoinedGoroutine) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	var wg sync.WaitGroup
	wg.Add(1)
	go func() { // want `sender out is used in another goroutine`
		defer wg.Done()
		out.SendPage(*m)
	}()
	wg.Go(func() { out.SendPage(*m) }) // want `sender out is used in another goroutine`
	wg.Wait()
	return nil
}

type KeepsSender struct {
	out  *PageSender
	send func(Page)
	any  interface{ SendPage(Page) }
}

func (p *KeepsSender) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	p.out = out           // want `sender out is stored in field out of KeepsSender, but it works only until ReceivePage returns`
	p.send = out.SendPage // want `sender out is stored in field send`
	p.any = out           // want `sender out is stored in field any`
	return nil
}

type Sends struct{ api *ApiSender }

func (p *Sends) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	send := out.SendPage
	send(*m)
	deliver(out, *m)
	each(m.Links, func(link string) { out.SendPage(Page{URL: link}) })
	defer out.SendPage(*m)
	defer func() { out.SendPage(*m) }()
	page := *m
	go func() { _ = p.api.SendPage(context.Background(), page) }()
	return nil
}

func each(list []string, f func(string)) {
	for _, s := range list {
		f(s)
	}
}

type ReadsInGoroutine struct{}

func (p *ReadsInGoroutine) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	go func() { println(m.URL) }() // want `message pointer m is used in another goroutine`
	go fetch(m)                    // want `message pointer m is used in another goroutine`
	go m.Bytes()                   // want `message pointer m is used in another goroutine`
	return nil
}

func fetch(m *Page) { println(m.URL) }

type CopiesForGoroutine struct{}

func (p *CopiesForGoroutine) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	page := *m
	go func() { println(page.URL) }()
	go println(m.URL)
	go func(url string) { println(url) }(m.URL)
	return nil
}

type WaitsForGroup struct{}

func (p *WaitsForGroup) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	var wg sync.WaitGroup
	sizes := make([]int, len(m.Links))
	for i := range m.Links {
		wg.Add(1)
		go func() {
			defer wg.Done()
			sizes[i] = len(m.Links[i])
			<-ctx.Done()
		}()
	}
	wg.Wait()
	return nil
}

type WaitsForErrgroup struct{}

func (p *WaitsForErrgroup) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, link := range m.Links {
		g.Go(func() error {
			r, err := web.NewRequest(ctx, link+m.URL)
			_ = r
			return err
		})
	}
	return g.Wait()
}

type ForgetsErrgroup struct{}

func (p *ForgetsErrgroup) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	var g errgroup.Group
	g.Go(func() error { // want `message pointer m is used in another goroutine`
		println(m.URL)
		return nil
	})
	return nil
}

type WaitsForChannel struct{}

func (p *WaitsForChannel) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	done := make(chan error, 1)
	go func() { done <- work(ctx, m) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func work(ctx context.Context, m *Page) error { return errors.New(m.URL) }

type WaitsForResults struct{}

func (p *WaitsForResults) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	var wg sync.WaitGroup
	results := make(chan string)
	for range 3 {
		wg.Go(func() { results <- m.URL })
	}
	go func() { wg.Wait(); close(results) }()
	for r := range results {
		out.SendPage(Page{URL: r})
	}
	return nil
}

type WaitsInHelper struct{}

func (p *WaitsInHelper) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	var wg sync.WaitGroup
	p.start(&wg, m)
	finish(&wg)
	return nil
}

func (p *WaitsInHelper) start(wg *sync.WaitGroup, m *Page) {
	wg.Add(1)
	go func() { defer wg.Done(); println(m.URL) }()
}

func finish(wg *sync.WaitGroup) { wg.Wait() }

type WaitsForFuture struct{}

func (p *WaitsForFuture) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	<-p.async(m)
	return nil
}

func (p *WaitsForFuture) async(m *Page) <-chan struct{} {
	done := make(chan struct{})
	go func() { defer close(done); println(m.URL) }()
	return done
}

type WaitsOnlyInGoroutine struct{}

func (p *WaitsOnlyInGoroutine) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	var wg sync.WaitGroup
	wg.Add(1)
	go func() { // want `message pointer m is used in another goroutine`
		defer wg.Done()
		println(m.URL)
	}()
	go func() { wg.Wait() }()
	return nil
}

type KeepsContext struct {
	ctx    context.Context
	cancel func()
	run    func()
}

func (p *KeepsContext) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	p.ctx = ctx // want `context ctx is stored in field ctx of KeepsContext, but it is valid only until ReceivePage returns`
	derived, cancel := context.WithTimeout(ctx, time.Second)
	p.ctx = derived // want `context ctx is stored in field ctx`
	p.cancel = cancel
	p.run = func() { <-derived.Done() } // want `context ctx is stored in field run`
	return nil
}

type ContextInGoroutine struct{ tracer string }

func (p *ContextInGoroutine) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	go func() { // want `context ctx is used in another goroutine`
		<-ctx.Done()
	}()
	context.AfterFunc(ctx, func() { _ = work(ctx, nil) }) // want `context ctx is used in another goroutine`
	context.AfterFunc(ctx, func() { println("stopped") })
	return nil
}

type StopsAfterFunc struct{ ctx context.Context }

func (p *StopsAfterFunc) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	stop := context.AfterFunc(ctx, func() { println(m.URL) })
	defer stop()
	timer := time.AfterFunc(time.Second, func() { println(m.URL, ctx) })
	defer timer.Stop()
	p.ctx = context.WithoutCancel(ctx)
	return nil
}

type UsesContext struct {
	release []func()
	tracer  any
	client  *web.Client
}

type key struct{}

func (p *UsesContext) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	p.release = append(p.release, topo.Hold(ctx))
	p.tracer = ctx.Value(key{})
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	r, err := web.NewRequest(ctx, m.URL)
	if err != nil {
		return err
	}
	err = p.client.Do(r)
	detached := context.WithoutCancel(context.Background())
	go func() { <-detached.Done() }()
	return errors.Join(err, ctx.Err())
}

type InitKeepsContext struct{ ctx context.Context }

func (p *InitKeepsContext) Init(ctx context.Context) error {
	p.ctx = ctx
	go func() { <-ctx.Done() }()
	return nil
}

func (p *InitKeepsContext) ReceivePage(ctx context.Context, m *Page, out *PageSender) error {
	page := *m
	go func() { _ = work(p.ctx, &page) }()
	return nil
}

func (p *InitKeepsContext) Finish(ctx context.Context, out *PageSender) error {
	p.ctx = ctx // want `context ctx is stored in field ctx`
	return nil
}

type PingKeeps struct{ out *PageSender }

func (p *PingKeeps) Ping(ctx context.Context, out *PageSender) error {
	p.out = out             // want `sender out is stored in field out`
	go out.SendPage(Page{}) // want `sender out is used in another goroutine, but it works only on the goroutine of Ping`
	return nil
}

type Serves struct {
	ctx context.Context
	out *FeedSender
}

func (s *Serves) Serve(ctx context.Context, out *FeedSender) error {
	s.ctx, s.out = ctx, out
	go func() { <-ctx.Done() }()
	return s.loop()
}

func (s *Serves) loop() error { return s.out.SendPage(Page{}) }

type ServesFromGoroutine struct{}

func (s *ServesFromGoroutine) Serve(ctx context.Context, out *FeedSender) error {
	go func() { _ = out.SendPage(Page{}) }() // want `sender out is used in another goroutine, but it works only on the goroutine of Serve`
	<-ctx.Done()
	return nil
}
