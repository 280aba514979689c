package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	gogrpc "google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/transport/grpc"
)

const (
	dialPauseMin = 50 * time.Millisecond
	dialPauseMax = time.Second            // a node that was restarted is found soon, and a node that is gone costs little
	refreshEvery = 5 * time.Second        // how late a client learns of new nodes and changed addresses
	refreshSoon  = 200 * time.Millisecond // after a node has ended its stream, because it may be about to leave
	askTimeout   = 5 * time.Second        // for one answer: a node that does not answer must not use up the whole wait
)

// find asks the addresses, one after the other, until a node answers.
func (c *clientPart) find(ctx context.Context, plan string) (*table.Replica, error) {
	ctx, cancel := context.WithTimeout(ctx, c.wait)
	defer cancel()
	if len(c.addresses) == 0 {
		return nil, fmt.Errorf("no address of a node is known: set Addresses, or %s", VariableNodes)
	}
	last := errors.New("no address was tried")
	for pause := dialPauseMin; ; pause = min(2*pause, dialPauseMax) {
		for _, address := range c.addresses {
			state, err := c.ask(ctx, address, plan)
			if err == nil {
				r := table.NewReplica()
				r.Adopt(state)
				return r, nil
			}
			if isFinal(err) {
				return nil, fmt.Errorf("node at %s: %w", address, refusal(err))
			}
			if ctx.Err() == nil {
				last = fmt.Errorf("%s: %w", address, refusal(err))
			}
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, fmt.Errorf("no node of the cluster has answered within %v%s; the last attempt: %w", c.wait, c.hint(), last)
		}
	}
}

// ask asks one node for the address table.
func (c *clientPart) ask(ctx context.Context, address, plan string) (*table.State, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	conn, err := grpc.DialThrough(address, c.transport.tls, c.transport.dial)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	return fetchPlaces(ctx, conn, plan, "")
}

// hint says what may be missing if no node answers.
func (c *clientPart) hint() string {
	if c.transport.tls == nil {
		return fmt.Sprintf(" (nodes with TLS need a certificate: set TLSCert, TLSKey and TLSCA, or %s, %s and %s; \"topoctl certs --client NAME\" makes one for development)",
			VariableCert, VariableKey, VariableCA)
	}
	return ""
}

// isFinal reports whether a node has refused the client, so that another attempt is useless.
func isFinal(err error) bool {
	switch status.Code(err) {
	case codes.FailedPrecondition, codes.PermissionDenied, codes.InvalidArgument, codes.Unimplemented:
		return true
	}
	return false
}

// refusal is an error of a node, or of the connection to it, without the codes of gRPC.
func refusal(err error) error {
	if s, ok := status.FromError(err); ok {
		return errors.New(grpc.Readable(s.Message()))
	}
	return err
}

// fetchPlaces asks a node for the address table. It returns nil if the node still has the
// revision.
func fetchPlaces(ctx context.Context, conn *gogrpc.ClientConn, plan, revision string) (*table.State, error) {
	answer := new(wrapperspb.BytesValue)
	request := wrapperspb.String(plan + "\n" + revision)
	if err := conn.Invoke(ctx, placesMethod, request, answer, gogrpc.MaxCallRecvMsgSize(table.SnapshotBytes+envelopeMax)); err != nil {
		return nil, err
	}
	if revision != "" && len(answer.GetValue()) == 0 {
		return nil, nil
	}
	return table.ReadState(answer.GetValue())
}

// refresh follows the changes of the address table until the client ends.
func (c *clientPart) refresh(n *Node, where *lookup) {
	next := refreshEvery
	timer := time.NewTimer(next)
	defer timer.Stop()
	for ; ; timer.Reset(next) {
		select {
		case <-timer.C:
			next = min(2*next, refreshEvery)
		case <-c.transport.stale:
			next = refreshSoon
		case <-c.transport.stopped:
			return
		}
		c.transport.keepRelays()
		conn := c.transport.anyConn()
		if conn == nil {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
		state, err := fetchPlaces(ctx, conn, n.settings.Plan, where.replica.Revision().String())
		cancel()
		switch {
		case err != nil:
			n.log.Debug("topogen: a node has not answered", slog.Any("error", refusal(err)))
		case state != nil && state.Revision().Compare(where.replica.Revision()) > 0:
			where.replica.Adopt(state)
			c.transport.follow(where.nodes())
			n.post(func(h *happened) { h.members = true })
		}
	}
}
