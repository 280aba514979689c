package pairtests_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/topogen/topogen/generated_test/pairs"
)

// durableEdges returns the durable edges.
func (r row) durableEdges() []string {
	return map[string][]string{
		"in": {"feed.One"}, "out": {"work.Out"}, "all": {"feed.One", "work.Out", "work.Again"}, "beside": {"client.Job"},
	}[r["durable"]]
}

func (r row) isDurable(from, message string) bool {
	return slices.Contains(r.durableEdges(), from+"."+message)
}

// kept returns the options of a durable edge, and none for another edge.
func (r row) kept(from, message string) []string {
	if !r.isDurable(from, message) {
		return nil
	}
	options := []string{"durable: true"}
	switch r["kept"] {
	case "id":
		options = append(options, "id: ID")
	case "limit":
		options = append(options, "limit: {rate: 200/s, concurrency: 1}")
	case "each": // of the messages with an index, each index has a limit
		per := map[bool]string{true: "ID", false: "Index"}[message == "Out"]
		options = append(options, "limit: {concurrency: 1, per: "+per+"}")
	case "deadline":
		options = append(options, fmt.Sprint("timeout: ", pairs.Deadline))
	}
	return options
}

// beside writes the processors of the durable edge that is beside all other edges.
func (r row) beside(b *strings.Builder) {
	if r["durable"] == "beside" {
		r.processor(b, "client", []string{"external: true"})
		r.processor(b, "desk", []string{"new: NewDesk", "instances: 2", "blocking: true"})
	}
}

// edgesBeside returns the edges of these processors.
func (r row) edgesBeside() []string {
	if r["durable"] != "beside" {
		return nil
	}
	options := append([]string{"message: Job", "key: ID"}, r.kept("client", "Job")...)
	if r["reply"] == "yes" {
		options = append(options, "reply: Rep")
	}
	return []string{"client -> desk: {" + strings.Join(options, ", ") + "}", "desk -> sink: Copy"}
}

// codeBeside writes the code of these processors.
func (r row) codeBeside(b *strings.Builder) {
	if r["durable"] != "beside" {
		return
	}
	r.message(b, "Job")
	r.message(b, "Copy")
	r.type_(b, "Desk")
	reply := ""
	if r["reply"] == "yes" {
		reply = "Rep"
	}
	r.handler(b, "Desk", "client", "Job", r.send("desk", "Copy", false), reply)
	r.handler(b, "Sink", "desk", "Copy", "", "")
}

// outsideDurable returns the code of a pairs.OutsideSend along a durable edge.
func (r row) outsideDurable(sender, from, message string) string {
	call, asks := fmt.Sprintf("return t.%s().Send%s(ctx, new%[2]s(id))", sender, message), ""
	if r["reply"] == "yes" {
		call, asks = fmt.Sprintf("_, err := t.%s().Ask%s(ctx, new%[2]s(id)); return err", sender, message), "Asks: true, "
	}
	return fmt.Sprintf("\t\t{Edge: \"%s.%s\", Durable: true, %sDo: func(ctx context.Context, id int) error { %s }},\n", from, message, asks, r.twice(call))
}

// sendDurable returns the code of a pairs.Send along a durable edge.
func (r row) sendDurable(from, message string) string {
	call := fmt.Sprintf("return out.Send%s(ctx, new%[1]s(id))", message)
	if message == "One" && r["reply"] == "yes" {
		call = fmt.Sprintf("_, err := out.Ask%s(ctx, new%[1]s(id)); return err", message)
	}
	return fmt.Sprintf("pairs.Send{Edge: \"%s.%s\", Durable: true, Do: func(id int) error { %s }}", from, message, r.twice(call))
}

// twice repeats a call for some messages if the edge has an id. The second message starts nothing.
func (r row) twice(call string) string {
	if r["kept"] != "id" {
		return call
	}
	return "return pairs.Twice(id, func() error { " + call + " })"
}
