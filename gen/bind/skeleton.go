package bind

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/topogen/topogen/gen/plan"
)

// skeletonFile is the name of the file that is added to the package as an overlay. It is
// not a path, so none of the user's files can have this name.
const skeletonFile = "topogen: what will be generated"

// Prefixes of the names that the skeleton gives to the types in the topology. None
// of the user's names begins with them.
const (
	messagePrefix   = "_topogen_message_"
	processorPrefix = "_topogen_processor_"
	contextName     = "_topogen_context"
	tickName        = "_topogen_tick"
	instanceName    = "_topogen_instance"
	deadLetterName  = "_topogen_dead_letter"
	durableName     = "_topogen_durable"
	statePrefix     = "_topogen_state_"
	updatePrefix    = "_topogen_update_"
	resultPrefix    = "_topogen_result_"
)

// skeleton is a Go file with the generated declarations that the binder needs: the senders,
// which handlers mention, without bodies. It also has an alias for every type in the
// topology. Each alias has its own line, so that the line of a type error identifies the
// type.
type skeleton struct {
	text       string
	messages   []string       // message names; the alias contains the index
	lines      map[int]string // aliases by line
	importText strings.Builder
	body       strings.Builder
	aliases    map[string]string // import path: alias
}

func newSkeleton(p *plan.Plan) *skeleton {
	s := &skeleton{lines: make(map[int]string), aliases: make(map[string]string)}
	var declarations []string
	declare := func(name, text string) {
		declarations = append(declarations, "type "+name+" = "+text+"\n")
		s.lines[1+len(declarations)] = name // after the package clause and the imports
	}
	declare(contextName, s.qualify("context")+".Context")
	declare(tickName, s.qualify(plan.Topo)+".Tick")
	declare(instanceName, s.qualify(plan.Topo)+".Instance")
	declare(deadLetterName, s.qualify(plan.Topo)+".DeadLetter")
	if p.Durable != nil {
		declare(durableName, s.qualify(plan.DurableRuntime)+".Context")
	}
	if p.Supervision != nil {
		s.body.WriteString("type ProcessorIndex int\n")
	}
	seen := make(map[string]bool)
	message := func(name string, t plan.TypeRef) {
		if !seen[name] {
			seen[name] = true
			declare(messagePrefix+strconv.Itoa(len(s.messages)), t.Format(s.qualify))
			s.messages = append(s.messages, name)
		}
	}
	for i := range p.Edges {
		e := &p.Edges[i]
		if e.From >= 0 && !e.DeadLetter {
			message(e.Message, e.Type)
		}
		if e.Reply != "" {
			message(e.Reply, e.ReplyType)
		}
	}
	for i := range p.Processors {
		if q := &p.Processors[i]; !q.External {
			declare(processorPrefix+strconv.Itoa(i), q.Type.Format(s.qualify))
		}
	}
	for i := range p.Processors {
		if m := p.Processors[i].Machine; m != nil && m.State != "" {
			declare(statePrefix+strconv.Itoa(i), m.StateType.Format(s.qualify))
			declare(updatePrefix+strconv.Itoa(i), m.UpdateType.Format(s.qualify))
			declare(resultPrefix+strconv.Itoa(i), m.ResultType.Format(s.qualify))
		}
	}
	for _, a := range p.Aliases {
		declare(a.Name, a.Type.Format(s.qualify))
	}
	for i := range p.Processors {
		s.sender(p, &p.Processors[i])
		s.inputs(&p.Processors[i])
	}
	s.text = "package " + p.Package + "; import (" + s.importText.String() + ")\n" + strings.Join(declarations, "") + s.body.String()
	return s
}

func (s *skeleton) qualify(path string) string {
	alias := s.aliases[path]
	if alias == "" {
		alias = "_topogen_" + strconv.Itoa(len(s.aliases))
		s.aliases[path] = alias
		fmt.Fprintf(&s.importText, "%s %q;", alias, path)
	}
	return alias
}

func (s *skeleton) sender(p *plan.Plan, q *plan.Processor) {
	if !q.HasSender() {
		return
	}
	fmt.Fprintf(&s.body, "type %s struct{ _ [0]func() }\n", q.Sender())
	if q.External { // handlers do not receive it, but a processor that embeds it has the method
		fmt.Fprintf(&s.body, "func (*%s) Close()\n", q.Sender())
		return
	}
	for _, send := range q.Sends {
		if send.Start != "" {
			s.durableSend(q, &send, &p.Edges[send.Edges[0]])
			continue
		}
		result := ""
		if send.Error {
			result = " error"
		}
		fmt.Fprintf(&s.body, "func (*%s) %s(m %s)%s\n", q.Sender(), send.Name, send.Type.Format(s.qualify), result)
	}
}

// durableSend declares the methods of a sender for a durable edge.
func (s *skeleton) durableSend(q *plan.Processor, send *plan.Send, e *plan.Edge) {
	method := func(name, result string) {
		fmt.Fprintf(&s.body, "func (*%s) %s(ctx %s.Context, m %s) %s\n", q.Sender(), name, s.qualify("context"), send.Type.Format(s.qualify), result)
	}
	handle := e.Handle()
	method(send.Name, "error")
	method(send.Start, "("+handle.Format(s.qualify)+", error)")
	if send.Ask != "" {
		method(send.Ask, "("+e.ReplyType.Format(s.qualify)+", error)")
	}
}

// inputs declares the types for methods of q that are called for changes of its inputs.
func (s *skeleton) inputs(q *plan.Processor) {
	if q.Inputs == nil {
		return
	}
	input := q.Ident + "Input"
	fmt.Fprintf(&s.body, "type %s int\nfunc (%s) String() string\ntype %ss struct{ _ [0]func() }\nconst (\n", input, input, input)
	for i, in := range q.Inputs {
		fmt.Fprintf(&s.body, "%s%s %s = %d\n", input, in.Ident, input, i)
	}
	s.body.WriteString(")\n")
}
