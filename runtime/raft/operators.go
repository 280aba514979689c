package raft

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	gogrpc "google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/topogen/topogen/runtime/transport/grpc"
)

// The operators' service has the method Operate and the stream Backup. A request, and the
// answer of Operate, are JSON in a google.protobuf.StringValue, so that any gRPC client
// can call the service.
const (
	operateService = "topogen.raft.Operators"
	operateMethod  = "/" + operateService + "/Operate"
	operateTimeMax = 10 * time.Minute       // limit of a command: a snapshot of a large state takes time
	operateAnswer  = 500 * time.Millisecond // a command ends this long before the caller's deadline, so that the caller receives the reason
)

// Command is a request of an operator to a node.
type Command struct {
	Do      string   // "status", "snapshot", "transfer" or "change"
	Group   string   `json:",omitempty"` // "": the only group
	To      string   `json:",omitempty"` // of "transfer": the new leader
	Changes []Change `json:",omitempty"` // of "change"
}

// Report is the answer to a Command.
type Report struct {
	Groups   []GroupStatus `json:",omitempty"` // of "status"
	Snapshot uint64        `json:",omitempty"` // of "snapshot": index of the last entry that it covers
}

// GroupStatus is the status of a node in a group.
type GroupStatus struct {
	Group string
	Status
}

// operators serves the commands for the nodes that share a listener.
type operators struct {
	mu    sync.Mutex
	nodes map[string]*Node // by group
}

func newOperators() *operators { return &operators{nodes: map[string]*Node{}} }

func (o *operators) register(r gogrpc.ServiceRegistrar) {
	r.RegisterService(&gogrpc.ServiceDesc{
		ServiceName: operateService,
		HandlerType: (*any)(nil),
		Methods:     []gogrpc.MethodDesc{{MethodName: "Operate", Handler: o.handle}},
		Streams:     []gogrpc.StreamDesc{{StreamName: backupMethod, Handler: o.backup, ServerStreams: true}},
	}, o)
}

// handle is called by the gRPC server. The interceptor between refuses callers that are
// not operators.
func (o *operators) handle(_ any, ctx context.Context, decode func(any) error, between gogrpc.UnaryServerInterceptor) (any, error) {
	request := new(wrapperspb.StringValue)
	if err := decode(request); err != nil {
		return nil, err
	}
	answer := func(ctx context.Context, _ any) (any, error) { return o.answer(ctx, request.GetValue()) }
	if between == nil {
		return answer(ctx, request)
	}
	return between(ctx, request, &gogrpc.UnaryServerInfo{Server: o, FullMethod: operateMethod}, answer)
}

// answer runs a command in JSON.
func (o *operators) answer(ctx context.Context, request string) (any, error) {
	c, err := parseCommand(request)
	if err != nil {
		return nil, err
	}
	ctx, cancel := withTimeout(ctx, operateTimeMax)
	defer cancel()
	report, err := o.operate(ctx, c)
	if err != nil {
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	}
	b, err := json.Marshal(report)
	if err != nil {
		return nil, err
	}
	return wrapperspb.String(string(b)), nil
}

// withTimeout ends a command shortly before its caller's deadline, and after timeout at
// the latest.
func withTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if at, ok := ctx.Deadline(); ok {
		left := time.Until(at)
		timeout = min(timeout, left-min(operateAnswer, left/4))
	}
	return context.WithTimeout(ctx, timeout)
}

// parseCommand reads a command in JSON.
func parseCommand(text string) (c Command, err error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return c, status.Errorf(codes.InvalidArgument, "the command: %v", err)
	}
	return c, nil
}

// find returns the node of a group. "" means the only group.
func (o *operators) find(group string) (n *Node, name string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	groups := slices.SortedFunc(maps.Keys(o.nodes), compareGroups)
	if group == "" && len(groups) == 1 {
		group = groups[0]
	}
	if n = o.nodes[group]; n == nil && len(groups) == 0 {
		return nil, group, errors.New("this process has no group yet: it is starting, or about to end")
	}
	if group == "" {
		return nil, group, fmt.Errorf("the node has several groups; name one with --group: %s", strings.Join(groups, ", "))
	}
	if n == nil {
		return nil, group, fmt.Errorf("no group %q here, only %s", group, strings.Join(groups, ", "))
	}
	return n, group, nil
}

// operate runs a command.
func (o *operators) operate(ctx context.Context, c Command) (r Report, err error) {
	if c.Do == "status" && c.Group == "" {
		o.mu.Lock()
		nodes := maps.Clone(o.nodes)
		o.mu.Unlock()
		for _, g := range slices.SortedFunc(maps.Keys(nodes), compareGroups) {
			r.Groups = append(r.Groups, GroupStatus{g, nodes[g].Status()})
		}
		return r, nil
	}
	n, group, err := o.find(c.Group)
	if err != nil {
		return r, err
	}
	switch c.Do {
	case "status":
		r.Groups = []GroupStatus{{group, n.Status()}}
	case "snapshot":
		r.Snapshot, err = n.Snapshot(ctx)
	case "transfer":
		err = n.TransferLeader(ctx, c.To)
	case "change":
		if err = checkAddresses(c.Changes); err == nil {
			err = n.ChangeMembers(ctx, c.Changes...)
		}
	default:
		err = fmt.Errorf("no command %q", c.Do)
	}
	return r, err
}

// compareGroups orders groups by name, and the groups of instances by number.
func compareGroups(a, b string) int {
	of, i, _ := instanceOf(a)
	other, j, _ := instanceOf(b)
	return cmp.Or(cmp.Compare(of, other), cmp.Compare(i, j), cmp.Compare(a, b))
}

// instanceOf returns the name and the numbers in ledger/3-of-16.
func instanceOf(group string) (of string, number, all int) {
	of, rest, ok := strings.Cut(group, "/")
	if !ok {
		return group, 0, 0
	}
	first, last, _ := strings.Cut(rest, "-of-")
	number, _ = strconv.Atoi(first)
	all, _ = strconv.Atoi(last)
	return of, number, all
}

// serve makes a node available to operators, until the returned function is called.
func (o *operators) serve(group string, n *Node) (end func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.nodes[group] = n
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.nodes, group)
	}
}

// Operate sends a command to the node that listens on an address. files are an operator's
// certificate, or nil.
func Operate(ctx context.Context, address string, files *grpc.TLS, c Command) (r Report, err error) {
	conn, err := grpc.Dial(address, files)
	if err != nil {
		return r, err
	}
	defer func() { _ = conn.Close() }()
	b, err := json.Marshal(c)
	if err != nil {
		return r, err
	}
	var answer wrapperspb.StringValue
	if err := conn.Invoke(ctx, operateMethod, wrapperspb.String(string(b)), &answer); err != nil {
		return r, operateError(address, err)
	}
	if err := json.Unmarshal([]byte(answer.GetValue()), &r); err != nil {
		return r, fmt.Errorf("raft: the answer of %s: %w", address, err)
	}
	return r, nil
}

// operateError returns the node's own error, or an error of the connection.
func operateError(address string, err error) error {
	if s, ok := status.FromError(err); ok && s.Code() == codes.FailedPrecondition {
		return errors.New(s.Message())
	}
	return fmt.Errorf("raft: %s: %w", address, err)
}

// checkAddresses checks addresses of operators. Other transports have other forms of
// addresses.
func checkAddresses(changes []Change) error {
	for _, c := range changes {
		if _, port, err := net.SplitHostPort(c.Address); c.Address != "" && (err != nil || port == "") {
			return fmt.Errorf("%w: the address of %s must be HOST:PORT, got %q", ErrMembers, c.Name, c.Address)
		}
	}
	return nil
}
