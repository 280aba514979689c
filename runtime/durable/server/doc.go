// Package server answers requests of Resonate's protocol for durable promises over HTTP.
//
//	e, err := engine.Open(engine.Config{Store: disk})
//	…
//	s, err := server.Listen(server.Config{Backend: e})
//	…
//	<-ctx.Done()
//	s.Close(shutdown) // then close the engine
//
// # Endpoints
//
//	POST /                    a request of the protocol; the HTTP status is that of the response
//	GET /poll/{group}/{pid}   the messages for a worker, as server-sent events
//	GET /backup               the file of the store as it is now; not a backup if it is cut
//	GET /health               200
//	GET /ready                200 if operations can be carried out, else 503
//	GET /metrics              on its own listener, if Config.MetricsListen is set
//
// Every other path is 404. All answers are JSON, except streams and metrics.
//
// # Guarantees
//
// A response with status 200 or 300 is sent after the effects are on disk. A request that
// was accepted is answered, also during Close and if a handler panics.
//
// Every endpoint needs a token or, with mutual TLS, a certificate of the client, if the
// server has them. Without them the server listens only on a loopback address, unless
// Config.Insecure is set, and answers only requests to names that no web page can use
// (see Config.Hosts). A request that a browser makes for a web page is refused, unless
// Config.Origins lists the page.
//
// Memory is limited, whatever clients do: the number of connections, of streams, of
// requests, of their bytes and of the bytes of responses, and the time to send a request and to read a response. A
// request beyond a limit of load gets status 429, and a worker beyond the limit of streams
// gets 503.
//
// # Limits
//
// One backup can be fetched at a time. Its reader must take 256 KiB per second on average and
// may not pause for longer than Config.BackupStall, because the file of the store grows in
// the meantime: space that becomes free is not used again.
//
// A message that could not be written to a stream goes to another worker or to the next
// connection. The messages that the kernel has already taken for a worker that is gone
// (at most 64 KiB and what the kernel of the worker holds) are lost. The retry of the task
// repeats messages of kind execute.
//
// A worker that does not read is disconnected after Config.WriteTimeout.
//
// # Design
//
// The package has its own routing of a few lines: the one of net/http redirects requests
// to cleaned paths, and SDKs do not follow redirects of a POST. Only HTTP/1.1 is spoken,
// so that the limit of connections is also one of requests.
package server
