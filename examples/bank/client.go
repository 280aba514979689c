package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"
)

const (
	attemptTimeout = 3 * time.Second       // of one request: longer than the node's own timeout, so that the node usually answers first
	retryDelay     = 10 * time.Millisecond // before the first attempt at another node
	retryDelayMax  = 200 * time.Millisecond
	answerBytesMax = 1 << 20 // of an answer: a thousand accounts
)

// client is a customer of the bank with its own session. It makes one request after the
// other. It repeats a request, at one node after the other, until it gets an answer.
type client struct {
	name    string // the name in the ledger's sessions
	http    *http.Client
	urls    func() []string // of the running nodes
	at      int             // the node that answered last
	retries *atomic.Int64   // shared by all clients

	session, sequence uint64
}

func newHTTPClient(clients int) *http.Client {
	return &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: clients},
		Timeout:   attemptTimeout,
	}
}

// errSessionLost means that the session has expired, so the outcome of the transfer is
// unknown.
var errSessionLost = errors.New("the session has expired")

// transfer makes a transfer. If the error is the error of ctx or errSessionLost, the
// outcome is unknown.
func (c *client) transfer(ctx context.Context, t Transfer) (Outcome, receipt, error) {
	if c.session == 0 {
		var s session
		if err := c.ask(ctx, http.MethodPost, "/sessions?client="+url.QueryEscape(c.name), nil, &s); err != nil {
			return Refused, receipt{}, err // nothing was proposed
		}
		c.session, c.sequence = s.Session, 0
	}
	c.sequence++
	var r receipt
	err := c.ask(ctx, http.MethodPost, "/transfers", transferRequest{c.session, c.sequence, t.From, t.To, t.Cents}, &r)
	var refused *refusal
	switch {
	case err == nil:
		return Booked, r, nil
	case errors.As(err, &refused) && refused.code == http.StatusConflict:
		return Refused, r, nil
	case errors.As(err, &refused) && refused.code == http.StatusGone:
		c.session = 0
		return Unknown, r, errSessionLost
	}
	return Unknown, r, err
}

// balances reads balances.
func (c *client) balances(ctx context.Context, prefix string) (b balances, err error) {
	err = c.ask(ctx, http.MethodGet, "/balances?prefix="+url.QueryEscape(prefix), nil, &b)
	return b, err
}

// refusal is an answer that would be the same at another node.
type refusal struct {
	code int
	failure
}

func (r *refusal) Error() string { return fmt.Sprintf("status %d: %s", r.code, r.failure.Error) }

// ask repeats a request until it is answered or refused, or ctx ends.
func (c *client) ask(ctx context.Context, method, path string, body, reply any) error {
	var content []byte
	if body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			return err
		}
	}
	for delay := retryDelay; ; delay = min(2*delay, retryDelayMax) {
		err := errors.New("no node runs")
		if urls := c.urls(); len(urls) > 0 {
			err = c.attempt(ctx, method, urls[c.at%len(urls)]+path, content, reply)
		}
		var refused *refusal
		if err == nil || errors.As(err, &refused) {
			return err
		}
		c.at++
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; the last attempt: %w", ctx.Err(), err)
		case <-time.After(delay):
			c.retries.Add(1)
		}
	}
}

func (c *client) attempt(ctx context.Context, method, url string, content []byte, reply any) error {
	q, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(content))
	if err != nil {
		return err
	}
	r, err := c.http.Do(q)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	in := io.LimitReader(r.Body, answerBytesMax)
	if r.StatusCode/100 == 2 {
		if err := json.NewDecoder(in).Decode(reply); err != nil {
			return err
		}
		_, err := io.Copy(io.Discard, in) // so that the connection is reused
		return err
	}
	f := failure{Error: r.Status}
	_ = json.NewDecoder(in).Decode(&f) // otherwise the status is used
	_, _ = io.Copy(io.Discard, in)
	if r.StatusCode < 500 {
		return &refusal{r.StatusCode, f}
	}
	return fmt.Errorf("status %d: %s", r.StatusCode, f.Error)
}
