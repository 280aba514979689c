package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/topogen/topogen/runtime/durable"
)

// worldVariable has the URL of the services outside.
const worldVariable = "CHECKOUT_WORLD"

// request is a request to one of the services outside.
type request struct {
	Key     string // idempotency key
	Order   int
	Subject string // an item, a card, a customer, or the number of what is undone
	Cents   int
}

// answer is the answer of a service. Refused says why the request is refused for good.
type answer struct{ Number, Refused string }

// client makes requests to the services outside.
type client struct {
	url  string
	http http.Client
}

// requestTimeout ends a request whose answer was lost.
const requestTimeout = 5 * time.Second

func newClient() *client {
	return &client{url: os.Getenv(worldVariable), http: http.Client{Timeout: requestTimeout}}
}

// post returns the number that the service gives out. A refusal is durable.Final: another
// attempt would not change it. Other errors are retried, as the topology file says.
func (c *client) post(ctx context.Context, path string, r request) (string, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return "", err
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/"+path, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	response, err := c.http.Do(post)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: status %d", path, response.StatusCode)
	}
	var a answer
	if err := json.NewDecoder(response.Body).Decode(&a); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	if a.Refused != "" {
		return "", durable.Final(fmt.Errorf("%s", a.Refused))
	}
	return a.Number, nil
}
