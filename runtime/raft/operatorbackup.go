package raft

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
	gogrpc "google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/topogen/topogen/runtime/raft/wal"
	"github.com/topogen/topogen/runtime/transport/grpc"
)

const (
	backupMethod  = "Backup"
	backupMessage = 1 << 20        // bytes of a backup in one message: a quarter of gRPC's limit
	backupTimeMax = 24 * time.Hour // limit of a backup: a large state takes long over a slow connection
)

// Backup writes a backup of the state to w, with all updates that were acknowledged
// before the call. Like Read, it needs a majority. OpenBackup reads the backup.
func (m *Machine[S, U, R]) Backup(ctx context.Context, w io.Writer) error {
	n, err := m.running()
	if err != nil {
		return err
	}
	return n.Backup(ctx, w)
}

// Backup writes a backup of the state to w.
func (n *Node) Backup(ctx context.Context, w io.Writer) error {
	if err := n.read(ctx, false, func() {}); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("raft: a backup needs a majority of the members, which has not answered: %w", err)
		}
		return err
	}
	if _, err := n.Snapshot(ctx); err != nil {
		return err
	}
	var i *Image
	failed := errors.New("raft: the node has no snapshot")
	if err := n.do(ctx, func(c *Core) {
		stored := wal.Stored{Snapshot: c.memory.snapshot, BodySize: -1, State: &pb.HardState{Term: new(c.term)}}
		if i, failed = newImage(n.record.identity(), &stored); failed != nil {
			return
		}
		body, size, err := openBody(n.log, c.SnapshotIndex()) // the opened body stays readable when a newer snapshot replaces it
		if failed = err; err == nil {
			i.bytes, i.body = uint64(size), true
			i.state = func() (io.ReadCloser, error) { return body, nil }
		}
	}); err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	_, err := i.WriteTo(w) // reads the state once, and closes it
	return err
}

// backup is the streaming method of the operators' service.
func (o *operators) backup(_ any, stream gogrpc.ServerStream) error {
	request := new(wrapperspb.StringValue)
	if err := stream.RecvMsg(request); err != nil {
		return err
	}
	c, err := parseCommand(request.GetValue())
	if err != nil {
		return err
	}
	n, _, err := o.find(c.Group)
	if err == nil {
		w := bufio.NewWriterSize(messages{stream}, backupMessage)
		ctx, cancel := withTimeout(stream.Context(), backupTimeMax)
		defer cancel()
		if err = n.Backup(ctx, w); err == nil {
			err = w.Flush()
		}
	}
	if err != nil {
		return status.Error(codes.FailedPrecondition, err.Error())
	}
	return nil
}

// messages is a writer that sends messages.
type messages struct{ stream gogrpc.ServerStream }

func (m messages) Write(b []byte) (sent int, err error) {
	for sent < len(b) {
		n := min(len(b)-sent, backupMessage)
		if err := m.stream.SendMsg(wrapperspb.Bytes(b[sent : sent+n])); err != nil {
			return sent, err
		}
		sent += n
	}
	return sent, nil
}

// OperateBackup writes a backup of a group to w, from the node that listens on an
// address. The group "" is the only group of the node. files are an operator's
// certificate, or nil.
func OperateBackup(ctx context.Context, address string, files *grpc.TLS, group string, w io.Writer) error {
	conn, err := grpc.Dial(address, files)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := conn.NewStream(ctx, &gogrpc.StreamDesc{StreamName: backupMethod, ServerStreams: true}, "/"+operateService+"/"+backupMethod)
	if err != nil {
		return operateError(address, err)
	}
	b, err := json.Marshal(Command{Do: "backup", Group: group})
	if err != nil {
		return err
	}
	if err := errors.Join(stream.SendMsg(wrapperspb.String(string(b))), stream.CloseSend()); err != nil {
		return operateError(address, err)
	}
	for {
		var chunk wrapperspb.BytesValue
		switch err := stream.RecvMsg(&chunk); {
		case err == io.EOF:
			return nil
		case err != nil:
			return operateError(address, err)
		}
		if _, err := w.Write(chunk.GetValue()); err != nil {
			return err
		}
	}
}
