package client

import (
	"crypto/tls"
	"net/http"
	"sync"
	"time"
)

// reloadPeriod is the time between two calls of Options.Certificates, as nodes look at their
// files.
const reloadPeriod = 10 * time.Second

// reloading is a transport with the current configuration of Options.Certificates. Requests that
// have begun keep their connections.
type reloading struct {
	options *Options

	mu        sync.Mutex
	asked     time.Time   // when Options.Certificates was called; zero: the next request calls it
	config    *tls.Config // of transport
	transport *http.Transport
}

// RoundTrip sends a request.
func (r *reloading) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.current().RoundTrip(request)
	if err != nil { // perhaps because of the certificates
		r.mu.Lock()
		r.asked = time.Time{}
		r.mu.Unlock()
	}
	return response, err
}

func (r *reloading) current() *http.Transport {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); now.Sub(r.asked) >= reloadPeriod {
		r.asked = now
		if config := r.options.Certificates(); config != r.config || r.transport == nil {
			if r.transport != nil {
				r.transport.CloseIdleConnections() // it closes those in use after their requests
			}
			r.config, r.transport = config, transport(r.options, config)
		}
	}
	return r.transport
}

// CloseIdleConnections closes connections without a request.
func (r *reloading) CloseIdleConnections() { r.current().CloseIdleConnections() }
