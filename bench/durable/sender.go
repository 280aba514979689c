package durable

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// A sender sends operations over its connections, which are kept. It does as little as
// possible for a request, because it shares the processors with the server: the client of
// net/http would take half of their time.
type sender struct {
	address string
	free    chan *connection // those that no operation uses
}

// A connection sends a request and reads its response.
type connection struct {
	net.Conn
	head      string // of each request
	in        *bufio.Reader
	out, body []byte
}

const connectionsMax = 1024

func newSender(url string) *sender {
	return &sender{strings.TrimPrefix(url, "http://"), make(chan *connection, connectionsMax)}
}

// Do carries out an operation.
func (s *sender) Do(_ context.Context, op protocol.Operation) (protocol.Result, error) {
	var c *connection
	select {
	case c = <-s.free:
	default:
		conn, err := net.Dial("tcp", s.address)
		if err != nil {
			return protocol.Result{}, err
		}
		c = &connection{Conn: conn, head: "POST / HTTP/1.1\r\nHost: " + s.address + "\r\nContent-Type: application/json\r\nContent-Length: ", in: bufio.NewReader(conn)}
	}
	r := protocol.Request{Head: protocol.Head{CorrID: "1"}, Op: op, ActionCorrID: "1"}
	res, err := c.do(&r)
	if err != nil {
		return res, errors.Join(err, c.Close())
	}
	select {
	case s.free <- c:
	default:
		err = c.Close()
	}
	return res, err
}

func (c *connection) do(r *protocol.Request) (protocol.Result, error) {
	c.body = protocol.AppendRequest(c.body[:0], r)
	c.out = append(c.out[:0], c.head...)
	c.out = strconv.AppendInt(c.out, int64(len(c.body)), 10)
	c.out = append(c.out, "\r\n\r\n"...)
	if _, err := c.Write(append(c.out, c.body...)); err != nil {
		return protocol.Result{}, err
	}
	if err := c.read(); err != nil {
		return protocol.Result{}, err
	}
	return protocol.DecodeResponse(c.body, r)
}

// read reads a response into body.
func (c *connection) read() error {
	length := -1
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			break
		}
		if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(value)); err != nil {
				return err
			}
		}
	}
	if length < 0 {
		return fmt.Errorf("the response has no Content-Length")
	}
	if cap(c.body) < length {
		c.body = make([]byte, length)
	}
	c.body = c.body[:length]
	_, err := io.ReadFull(c.in, c.body)
	return err
}

// Close closes the connections. No operation may be under way.
func (s *sender) Close() error {
	var errs []error
	for {
		select {
		case c := <-s.free:
			errs = append(errs, c.Close())
		default:
			return errors.Join(errs...)
		}
	}
}
