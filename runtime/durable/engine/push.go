package engine

import (
	"bytes"
	"container/list"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/internal/backoff"
	"github.com/topogen/topogen/runtime/internal/loglimit"
)

// pusher sends messages to http and https addresses. A message is sent once: the retry of
// a task sends an execute message again, and a refill sends an unblock message again. An
// address that fails gets one message at a time, after a delay that doubles.
type pusher struct {
	engine *Engine
	client *http.Client
	ctx    context.Context // of all requests
	cancel context.CancelFunc
	group  sync.WaitGroup
	log    *loglimit.Limiter // of addresses, which clients choose

	mu      sync.Mutex
	closed  bool
	targets map[string]*target       // by address
	hosts   map[string]*host         // with messages or requests, by scheme, name and port
	line    list.List                // of *host with messages, and fewer requests than pushesForHost
	tasks   map[string]*list.Element // execute messages that wait, by task
	waiting int                      // messages
	bytes   int                      // of all messages in memory
	active  int                      // requests
	stored  bool                     // the store may have messages to send
	scanAt  time.Duration

	waitingMax, bytesMax int // pushesWaiting and pushBytesMax, or less in tests
}

// A host shares its requests among its addresses. Without it, a host that does not answer
// could take all requests, with one address for each message.
type host struct {
	name    string
	targets list.List // of *target with messages, and fewer requests than pushesForAddress
	active  int
	place   *list.Element // in pusher.line; nil: it is not there
}

// A target is an address with messages, requests or failures.
type target struct {
	address  string
	host     string
	messages list.List // of core.Effect
	active   int
	place    *list.Element // in host.targets; nil: it is not there
	failures int           // in a row
	retryAt  time.Duration
}

func newTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = (&net.Dialer{Timeout: PushConnectTimeout, KeepAlive: PushConnectTimeout}).DialContext
	t.TLSHandshakeTimeout = PushConnectTimeout
	t.MaxIdleConns = PushesMax
	t.MaxIdleConnsPerHost = pushesForAddress
	t.MaxResponseHeaderBytes = pushAnswerMax // the default is 10 MiB, for each of PushesMax requests
	return t
}

func newPusher(e *Engine) *pusher {
	p := &pusher{engine: e, targets: map[string]*target{}, hosts: map[string]*host{}, tasks: map[string]*list.Element{}, stored: true, waitingMax: pushesWaiting, bytesMax: pushBytesMax}
	p.log = loglimit.New(e.config.Logger, "durable", "addresses of messages")
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.client = &http.Client{
		Transport: e.config.Push, Timeout: PushTimeout,
		// A redirect can lead to a host that the client of the address did not choose, so
		// it counts as a failure.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return p
}

// add takes a message. It reports false if the message has no place.
func (p *pusher) add(e core.Effect) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.replace(e) {
		return true
	}
	if !p.accepts(e.Address) || e.Message.Unblock != nil && p.bytes >= p.bytesMax {
		p.stored = p.stored || e.Message.Unblock != nil
		return false
	}
	t := p.targets[e.Address]
	if t == nil {
		t = &target{address: e.Address, host: hostOf(e.Address)}
		p.targets[e.Address] = t
	}
	place := t.messages.PushBack(e)
	if x := e.Message.Execute; x != nil {
		p.tasks[x.ID] = place
	}
	p.waiting++
	p.bytes += pushBytes(e)
	p.enter(t)
	p.start()
	return true
}

// replace puts an execute message in the place of an earlier one of its task. It reports false
// if there is none.
func (p *pusher) replace(e core.Effect) bool {
	x := e.Message.Execute
	if x == nil || p.tasks[x.ID] == nil {
		return false
	}
	if place := p.tasks[x.ID]; place.Value.(core.Effect).Address == e.Address {
		place.Value = e
		return true
	}
	p.drop(x.ID) // the task was deleted, and created again with another address
	return false
}

// remove removes the execute message of a task. It reports false if none waits.
func (p *pusher) remove(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tasks[id] == nil {
		return false
	}
	p.drop(id)
	return true
}

// drop removes the execute message of a task, which waits.
func (p *pusher) drop(id string) {
	place := p.tasks[id]
	t := p.targets[place.Value.(core.Effect).Address]
	p.take(t, place)
	if t.messages.Len() > 0 {
		return
	}
	h := p.hosts[t.host]
	h.leave(t)
	p.enterHost(h)
	if t.active == 0 && t.failures == 0 {
		delete(p.targets, t.address)
	}
}

// take removes a message of a target.
func (p *pusher) take(t *target, place *list.Element) core.Effect {
	e := t.messages.Remove(place).(core.Effect)
	if x := e.Message.Execute; x != nil {
		delete(p.tasks, x.ID)
	}
	p.waiting--
	return e
}

// pushBytes is the memory for the parts of a message that a client made as long as it liked.
func pushBytes(e core.Effect) int {
	if u := e.Message.Unblock; u != nil {
		return value(u.Param) + value(u.Value)
	}
	return 0
}

// accepts reports whether an address can take a message.
func (p *pusher) accepts(address string) bool {
	t := p.targets[address]
	switch {
	case p.closed || p.waiting >= p.waitingMax:
		return false
	case t == nil:
		return len(p.targets) < pushTargetsMax || p.evict()
	}
	return t.failures == 0 || t.active == 0 && t.messages.Len() == 0 && p.engine.config.Clock.Elapsed() >= t.retryAt
}

// places returns how many execute messages an address can take.
func (p *pusher) places(address string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.accepts(address) {
		return 0
	}
	if t := p.targets[address]; t != nil && t.failures > 0 {
		return 1
	}
	return p.waitingMax - p.waiting
}

// evict forgets the failures of an address.
func (p *pusher) evict() bool {
	for address, t := range p.targets {
		if t.active == 0 && t.messages.Len() == 0 {
			delete(p.targets, address)
			return true
		}
	}
	return false
}

// hostOf returns the scheme, the name and the port of an address.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address // the request fails
	}
	return u.Scheme + "://" + strings.ToLower(u.Host)
}

// enter puts a target in line if it may have one more request.
func (p *pusher) enter(t *target) {
	if t.place != nil || t.messages.Len() == 0 || t.active >= pushesForAddress {
		return
	}
	h := p.hosts[t.host]
	if h == nil {
		h = &host{name: t.host}
		p.hosts[t.host] = h
	}
	t.place = h.targets.PushBack(t)
	p.enterHost(h)
}

// leave takes a target out of line, if it is there.
func (h *host) leave(t *target) {
	if t.place != nil {
		h.targets.Remove(t.place)
		t.place = nil
	}
}

// enterHost puts a host in line if it may have one more request, takes it out of line if it has
// no messages, and forgets an idle one.
func (p *pusher) enterHost(h *host) {
	switch more := h.targets.Len() > 0; {
	case more && h.place == nil && h.active < pushesForHost:
		h.place = p.line.PushBack(h)
	case !more && h.place != nil:
		p.line.Remove(h.place)
		h.place = nil
	}
	if h.targets.Len() == 0 && h.active == 0 {
		delete(p.hosts, h.name)
	}
}

// start starts requests, for the hosts in turn, and for the addresses of a host in turn.
func (p *pusher) start() {
	for !p.closed && p.active < PushesMax && p.line.Len() > 0 {
		h := p.line.Front().Value.(*host)
		p.line.Remove(h.place)
		h.place = nil
		t := h.targets.Front().Value.(*target)
		h.leave(t)
		e := p.take(t, t.messages.Front())
		t.active++
		h.active++
		p.active++
		p.enter(t)
		p.enterHost(h)
		p.group.Go(func() { p.finish(t, e, p.send(e)) })
	}
}

// send sends a message, and returns nil if the receiver has answered with a status of 200
// to 299.
func (p *pusher) send(e core.Effect) error {
	body := protocol.AppendMessage(nil, &e.Message, p.engine.config.ServerURL)
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.Address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := p.client.Do(request)
	if err != nil {
		return err
	}
	late := time.AfterFunc(pushBodyTimeout, cancel)
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, pushAnswerMax)) // only the status counts
	_ = response.Body.Close()
	late.Stop()
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return fmt.Errorf("the status is %s", response.Status)
	}
	return nil
}

// withoutURL returns the reason of an error of http.Client, whose text has the URL with its query.
func withoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// finish notes the outcome of a request.
func (p *pusher) finish(t *target, e core.Effect, err error) {
	p.engine.hub.pushed(e, err == nil)
	if err != nil && p.ctx.Err() == nil {
		address := protocol.Redacted(e.Address)
		p.log.Log(slog.LevelWarn, address, "a message was not delivered", "address", address, "error", withoutURL(err))
	}
	p.mu.Lock()
	p.bytes -= pushBytes(e)
	dropped := p.note(t, err)
	p.start()
	p.mu.Unlock()
	for _, e := range dropped {
		p.engine.hub.notPushed(e)
	}
}

// note updates a target after a request, and returns the messages that a failed target
// gives up.
func (p *pusher) note(t *target, err error) (dropped []core.Effect) {
	h := p.hosts[t.host] // it has this request
	p.active--
	t.active--
	h.active--
	defer p.enterHost(h)
	if err == nil {
		t.failures = 0
		if p.enter(t); t.active == 0 && t.messages.Len() == 0 {
			delete(p.targets, t.address)
		}
		return nil
	}
	t.failures++
	t.retryAt = p.engine.config.Clock.Elapsed() + backoff.Delay(pushDelayMin, pushDelayMax, 0.5, t.failures, rand.Float64)
	p.stored = true
	h.leave(t)
	for t.messages.Len() > 0 {
		e := p.take(t, t.messages.Front())
		p.bytes -= pushBytes(e)
		dropped = append(dropped, e)
	}
	return dropped
}

// wantsRefill reports whether the store should be searched for messages.
func (p *pusher) wantsRefill() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	elapsed := p.engine.config.Clock.Elapsed()
	if !p.stored || p.closed || elapsed < p.scanAt {
		return false
	}
	p.stored = false
	p.scanAt = elapsed + pushInterval
	return true
}

// ready reports whether an address can take a message now. If not, the store is searched
// again.
func (p *pusher) ready(address string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	ok := p.accepts(address) && p.bytes < p.bytesMax
	p.stored = p.stored || !ok
	return ok
}

// close ends all requests.
func (p *pusher) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cancel()
	p.group.Wait()
	p.log.Report()
}

// offerPush hands a stored unblock message to the pusher.
func (h *hub) offerPush(e core.Effect) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	id := core.Delivered{Promise: e.Message.Unblock.ID, Address: e.Address}
	if h.flying[id] {
		return true
	}
	ok := h.push(e)
	if ok {
		h.flying[id] = true
	}
	return ok
}

// pushed notes the outcome of a request.
func (h *hub) pushed(e core.Effect, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !ok {
		h.counters.pushed.failed.Add(1)
		h.land(e)
		return
	}
	h.counters.pushed.delivered.Add(1)
	if u := e.Message.Unblock; u != nil {
		h.took(core.Delivered{Promise: u.ID, Address: e.Address})
	}
}

// notPushed notes that the pusher gave up a message without sending it.
func (h *hub) notPushed(e core.Effect) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e.Message.Execute != nil {
		h.counters.pushed.dropped.Add(1)
	}
	h.land(e)
}

// land notes that an unblock message is only in the store again.
func (h *hub) land(e core.Effect) {
	if u := e.Message.Unblock; u != nil {
		delete(h.flying, core.Delivered{Promise: u.ID, Address: e.Address})
	}
}
