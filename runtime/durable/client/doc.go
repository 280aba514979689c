// Package client sends the operations of durable promises to a server, and receives the
// messages for a worker.
//
//	c, err := client.New("http://127.0.0.1:8001", client.Options{Token: token})
//	…
//	defer c.Close()
//	res, err := c.Do(ctx, protocol.PromiseGet{ID: "order-17"})
//	if err != nil {
//		return err // the server could not be asked, or did not answer
//	}
//	if res.Status != protocol.OK {
//		return errors.New(res.Error) // the server refused
//	}
//	fmt.Println(res.Promise.State)
//
// A [Client] is a [protocol.Backend], as the engine is. So a program works in the same
// way with a server and with an engine of its own.
//
// # Guarantees
//
// A Result is an answer of the server to exactly this operation. Everything else is an
// error: the outcome is then not known, and the operation may still be carried out.
// Creating and settling a promise can be repeated safely.
//
// A [Connection] connects again whenever the stream breaks, after 1 s, 2 s, 4 s and so on
// up to 30 s. It reports each change to [Options.Events]. Messages arrive in the order in
// which the server sent them.
//
// # Limits
//
// The client reads at most [Options.ResponseMax] bytes of a response or message, whatever
// the server sends. It does not repeat operations and follows no redirects: a token is
// sent only to the server that was given.
//
// The message that the client was reading when a stream broke is lost. The server sends
// messages of kind execute again after its retry timeout. For other messages, ask for the
// promise after a reconnect.
package client
