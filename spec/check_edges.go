package spec

import (
	"fmt"
	"go/token"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/topogen/topogen/spec/finding"
)

// edgeKey identifies an edge. Two edges must not have the same key.
type edgeKey struct {
	from, to int
	message  string
	every    time.Duration
	timer    string
}

func (b *builder) checkEdges() {
	seen := map[edgeKey]*Edge{}
	for i := range b.topology.Edges {
		e := &b.topology.Edges[i]
		if e.To >= 0 && b.topology.Processors[e.To].External {
			b.found.add(finding.IntoExternal, e.ToText.At, e.Pointer, "an edge must not lead to an external processor, got "+quoted(e.ToText.Value), "to send it an answer, write reply on an edge from it")
		}
		if !e.Implied {
			b.checkField(e.Route.Field)
			b.checkField(e.ID)
			if e.Limit != nil {
				b.checkField(e.Limit.Per)
			}
		}
		if b.found.broken[e.Pointer] || e.From == noProcessor || e.To == noProcessor {
			continue
		}
		key := edgeKey{e.From, e.To, e.Message.Value, e.Every, e.Timer.Value}
		if first, ok := seen[key]; ok {
			b.found.add(finding.EdgeTwice, e.At, e.Pointer, fmt.Sprintf("the edge %s must appear once, and line %d has it too", e.title(), first.At.Line), "remove one of them")
			continue
		}
		seen[key] = e
		b.checkRoute(i, e)
		b.checkTimeout(i, e)
		b.checkSupervisedEdge(i, e)
		b.checkDurableEdge(i, e)
	}
	for i := range b.topology.Edges {
		e := &b.topology.Edges[i]
		if e.Reply.Value == "" || e.From < 0 || e.To < 0 || b.topology.Processors[e.From].External || e.Durable {
			continue
		}
		if back, ok := seen[edgeKey{from: e.To, to: e.From, message: e.Reply.Value}]; ok {
			b.found.addText(finding.ReplyCollides, e.Reply, fmt.Sprintf("the reply %s from %s to %s must not be the message of an edge, and line %d has such an edge",
				quoted(e.Reply.Value), e.ToText.Value, e.FromText.Value, back.At.Line), "remove that edge, or give the reply its own name")
		}
	}
}

// title returns the edge in the form of the file.
func (e *Edge) title() string {
	title := clip(e.FromText.Value) + " -> " + clip(e.ToText.Value)
	if e.Message.Value != "" {
		title += ": " + clip(e.Message.Value)
	}
	return title
}

// checkRoute reports an edge that needs a route and has none, and an edge with an unsuitable
// route.
func (b *builder) checkRoute(i int, e *Edge) {
	to := &b.topology.Processors[e.To]
	if b.found.broken[to.Pointer+"/instances"] || e.Implied {
		return // an implied edge has the route of its processor
	}
	if b.checkNodeRoute(i, e) {
		return
	}
	external := e.From >= 0 && b.topology.Processors[e.From].External
	several := e.Route.Kind == RouteBroadcast && to.Instances > 1 || e.Route.Kind == RouteRange && e.Route.Count > 1
	switch {
	case e.Route.Kind == RouteNone && e.Route.Pointer == "" && to.Instances > 1 && e.Every == 0:
		b.found.add(finding.NoRoute, e.ToText.At, e.Pointer, fmt.Sprintf("an edge to several instances must have a key or a route, and %s has %d instances", quoted(to.Name.Value), to.Instances),
			b.keySuggestion(i, e)+"; topogen explain TG205 lists the routes")
	case e.Route.Kind == RouteNone && e.Route.Pointer != "":
		b.found.add(finding.MissingKey, e.Route.At, e.Route.Pointer, "route must not be empty", "write local, broadcast, {id: FIELD} or {range: {offset: 0, count: 1}}")
	case e.Route.Kind == RouteRange && e.Route.Offset+e.Route.Count > to.Instances:
		b.found.add(finding.RangeOutside, e.Route.At, e.Route.Pointer, fmt.Sprintf("range must be within the instances 0 to %d of %s, got %d to %d",
			to.Instances-1, quoted(to.Name.Value), e.Route.Offset, e.Route.Offset+e.Route.Count-1), "write a smaller offset or count")
	case e.Every > 0 && (e.Route.Kind == RouteLocal || e.Route.Kind == RouteID || e.Route.Kind == RouteNode):
		b.found.add(finding.RouteUnfit, e.Route.At, e.Route.Pointer, fmt.Sprintf("the route of a timer must be a range or broadcast, got %s", e.Route.Kind), "write a range, or remove the route: then each instance gets the tick")
	case external && e.Route.Kind == RouteLocal:
		b.found.add(finding.RouteUnfit, e.Route.At, e.Route.Pointer, "an edge from an external processor must not have the route local: such a processor has no instances", "write a key")
	case external && several && e.Reply.Value != "" && b.section == nil:
		b.found.add(finding.RouteUnfit, e.Route.At, e.Route.Pointer, "an edge with a reply to Ask must lead to one instance, got several", "choose one instance: write a key")
	}
}

// keySuggestion says how to write the edge with a key.
func (b *builder) keySuggestion(i int, e *Edge) string {
	if v := b.options[i]; v == nil || v.Kind != Map { // the value is only the name of the message
		return fmt.Sprintf("write %q", "{message: "+clip(e.Message.Value)+", key: FIELD}")
	}
	return `write "key: FIELD"`
}

// checkField reports a field path that is not valid in Go.
func (b *builder) checkField(field Text) {
	if field.Pointer == "" || b.found.exact[field.Pointer] {
		return
	}
	if utf8.RuneCountInString(field.Value) > typeMax {
		b.found.addText(finding.Form, field, fmt.Sprintf("a field path must have at most %d characters, got more", typeMax), "shorten it")
		return
	}
	for part := range strings.SplitSeq(field.Value, ".") {
		if !token.IsIdentifier(part) || part == "_" {
			b.found.addText(finding.Form, field, lastElement(field.Pointer)+" must be a field path or a method, got "+quoted(field.Value), `write it as in Go, without parentheses, such as "Header.Account"`)
			return
		}
	}
}

// checkTimeout reports a timeout on an edge without an Ask that could wait.
func (b *builder) checkTimeout(i int, e *Edge) {
	option := b.option(i, "timeout")
	switch {
	case option == nil, e.Durable:
	case e.Reply.Value == "":
		b.found.addText(finding.NoEffect, option.Key, "timeout must go with a reply, but the edge has no reply", `write "reply: Message", or remove timeout`)
	case !b.topology.Processors[e.From].External:
		b.found.addText(finding.NoEffect, option.Key, fmt.Sprintf("timeout must be on an edge from an external processor, and %s is not external: it receives the reply as a message", quoted(e.FromText.Value)), "remove timeout")
	}
}

// option returns the option of an edge with the name, or nil.
func (b *builder) option(edge int, name string) *Field {
	if v := b.options[edge]; v != nil {
		return v.field(name)
	}
	return nil
}

// field returns the field with the name, or nil.
func (v *Value) field(name string) *Field {
	for i := range v.Fields {
		if v.Fields[i].Key.Value == name {
			return &v.Fields[i]
		}
	}
	return nil
}
