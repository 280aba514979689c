package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// A Refusal is the answer of a server that does not make a backup.
type Refusal struct {
	Status int
	Reason string
}

func (r *Refusal) Error() string { return r.Reason }

// A Backup is the file of a server's store, while it arrives. A file that has fewer than Bytes
// bytes is not a backup; Read then returns an error that is not io.EOF.
type Backup struct {
	io.ReadCloser
	Bytes int64
}

// Backup fetches the file of the server's store as it is now. Close ends the backup. ctx must
// live as long as the backup, and Options.Timeout is the longest time without a byte. The error
// matches a [*Refusal] if the server has answered.
func (c *Client) Backup(ctx context.Context) (*Backup, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	silence := time.AfterFunc(c.options.Timeout, func() { cancel(fmt.Errorf("the server has sent nothing for %v", c.options.Timeout)) })
	request := &http.Request{Method: http.MethodGet, URL: c.post.JoinPath("backup"), Header: http.Header{}}
	if token := c.streams.Get("Authorization"); token != "" {
		request.Header.Set("Authorization", token)
	}
	response, err := c.transport.RoundTrip(request.WithContext(ctx))
	if err != nil {
		err = because(ctx, err)
	} else if response.StatusCode != http.StatusOK {
		err = refusal(response)
	} else if response.ContentLength < 0 {
		err = errors.Join(errors.New("the server has not announced the length of the backup"), response.Body.Close())
	}
	if err != nil {
		silence.Stop()
		cancel(nil)
		return nil, fmt.Errorf("client: backup: %w", err)
	}
	body := &alive{response.Body, silence, c.options.Timeout}
	return &Backup{&arriving{body, response.Body, ctx, cancel, silence}, response.ContentLength}, nil
}

// refusal reads why a server refuses a request.
func refusal(response *http.Response) error {
	defer func() { _ = response.Body.Close() }() // the status is known
	const most = 64 << 10                        // a refusal is a sentence
	text, err := io.ReadAll(io.LimitReader(response.Body, most))
	if err != nil {
		return err
	}
	r := &Refusal{response.StatusCode, "the server refused with status " + response.Status}
	res, err := protocol.DecodeResponse(text, &protocol.Request{Op: protocol.PromiseGet{}})
	if err == nil && res.Error != "" {
		r.Reason = res.Error
	}
	return r
}

// arriving is the body of a response.
type arriving struct {
	r       io.Reader
	body    io.Closer
	ctx     context.Context
	cancel  context.CancelCauseFunc
	silence *time.Timer
}

func (a *arriving) Read(b []byte) (int, error) {
	n, err := a.r.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		err = because(a.ctx, err)
	}
	return n, err
}

func (a *arriving) Close() error {
	a.silence.Stop()
	a.cancel(nil)
	return a.body.Close()
}
