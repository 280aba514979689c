package server_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"

	"github.com/topogen/topogen/runtime/durable/server"
)

// BenchmarkPost measures the server with a client that costs almost nothing, and a store
// in memory. An iteration is a create and a settle.
func BenchmarkPost(b *testing.B) {
	s := listen(b, server.Config{})
	c, err := net.Dial("tcp", s.Address())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	r := bufio.NewReader(c)
	var frame []byte
	post := func(kind, data string) {
		body := envelope(kind, "3f2a4f10-6a27-4f4e-9d3c-0a3a57a0b1de", "", data)
		frame = fmt.Appendf(frame[:0], "POST / HTTP/1.1\r\nHost: localhost:8001\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		if _, err := c.Write(frame); err != nil {
			b.Fatal(err)
		}
		length := 0
		for line := ""; line != "\r\n"; {
			if line, err = r.ReadString('\n'); err != nil {
				b.Fatal(err)
			}
			fmt.Sscanf(line, "Content-Length: %d", &length)
		}
		if _, err := io.CopyN(io.Discard, r, int64(length)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		id := fmt.Sprint("promise-", i)
		post("promise.create", `{"id":"`+id+`","timeoutAt":9007201000000000,"param":{"data":"e30="},"tags":{"resonate:origin":"`+id+`"}}`)
		post("promise.settle", `{"id":"`+id+`","state":"resolved","value":{"data":"e30="}}`)
	}
}

// BenchmarkClientsAfterARestart measures how long 1,024 clients with mutual TLS wait that connect at
// once, as after a restart of the server. An iteration is all of them, on one computer with the server.
func BenchmarkClientsAfterARestart(b *testing.B) {
	a := newAuthority(b)
	config := server.Config{TLS: &tls.Config{
		Certificates: []tls.Certificate{a.issue(b, x509.ExtKeyUsageServerAuth)}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.pool(),
	}}
	known := &tls.Config{RootCAs: a.pool(), Certificates: []tls.Certificate{a.issue(b, x509.ExtKeyUsageClientAuth)}}
	for b.Loop() {
		s := listen(b, config)
		var clients sync.WaitGroup
		for range 1024 {
			clients.Go(func() {
				transport := &http.Transport{TLSClientConfig: known}
				defer transport.CloseIdleConnections()
				response, err := (&http.Client{Transport: transport}).Get(s.URL() + "/health")
				if err != nil {
					b.Error(err)
					return
				}
				defer response.Body.Close()
				if io.Copy(io.Discard, response.Body); response.StatusCode != 200 {
					b.Errorf("got status %d", response.StatusCode)
				}
			})
		}
		clients.Wait()
		s.Close(b.Context())
	}
}
