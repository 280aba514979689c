package raft

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/topogen/topogen/runtime/raft/wal"
)

// Image is the state of a group at one entry, and the entries after it: the content of a
// node's folder, or of a backup. A new group can be founded from it.
type Image struct {
	Topology string
	Group    string
	GroupID  uint64   // identity of the original group
	Node     string   // name of the original node, when its record was written
	Members  []Member // members at Index, as the original node knew them
	Index    uint64   // of the last entry in the state
	Term     uint64   // term of that entry
	Last     uint64   // index of the last entry, or Index if there are none after it
	LastTerm uint64   // term of the last entry, or a later term that the node has seen

	id      uint64     // identity of the original node; 0: the image is a backup
	dir     string     // folder that the image was opened from; "": it is a backup
	report  wal.Report // of the log in dir
	bytes   uint64     // size of the state
	body    bool       // the state is a stream in the log
	state   func() (io.ReadCloser, error)
	entries func(visit func(*pb.Entry) error) error
	close   func() error
}

// ErrImage is matched by the errors of files that are not a complete backup.
var ErrImage = errors.New("raft: not a backup")

// OpenImage reads the folder of a node that does not run. It cuts off an incomplete end
// of the log, which a crash leaves, as the node does when it starts. It changes nothing
// else.
func OpenImage(dir string) (*Image, error) {
	if err := checkFinished(dir); err != nil {
		return nil, err
	}
	report, err := wal.Verify(dir)
	if err != nil {
		return nil, err
	}
	log, stored, err := wal.Open(dir, report.Identity, wal.Options{})
	if err != nil {
		return nil, err
	}
	if err := log.Close(); err != nil {
		return nil, err
	}
	if stored.Snapshot == nil {
		return nil, fmt.Errorf("raft: %s is the log of a node that joined a group but has not received its state: take the folder of another node, or a backup", dir)
	}
	i, err := newImage(report.Identity, &stored)
	if err != nil {
		return nil, err
	}
	i.dir = dir
	if i.report, err = wal.Verify(dir); err != nil { // again, because the report must not include the part that was cut off
		return nil, err
	}
	return i, nil
}

// newImage returns an image of the content of a log.
func newImage(id wal.Identity, s *wal.Stored) (*Image, error) {
	h, machine, err := readSnapshot(s.Snapshot.GetData())
	if err != nil {
		return nil, err
	}
	meta := s.Snapshot.GetMetadata()
	i := &Image{
		Topology: id.Topology, Group: id.Group, GroupID: max(h.groupID, id.GroupID), Node: id.Name, id: id.Node,
		Members: h.members, Index: meta.GetIndex(), Term: meta.GetTerm(), Last: meta.GetIndex() + uint64(len(s.Entries)),
		LastTerm: max(meta.GetTerm(), s.State.GetTerm()), bytes: uint64(len(machine)),
		state: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(machine)), nil },
		close: func() error { return nil },
	}
	if s.BodySize >= 0 {
		i.bytes, i.body = uint64(s.BodySize), true
		i.state = func() (io.ReadCloser, error) { return s.OpenBody() }
	}
	for _, e := range s.Entries {
		i.LastTerm = max(i.LastTerm, e.GetTerm())
	}
	i.entries = func(visit func(*pb.Entry) error) error {
		for _, e := range s.Entries {
			if err := visit(e); err != nil {
				return err
			}
		}
		return nil
	}
	return i, nil
}

// Close closes the file of the image, if there is one.
func (i *Image) Close() error { return i.close() }

// Found founds a group of one member from the image. The folder dir must not hold a log.
// The new group gets its own identity, and its node gets its own id. All entries count as
// committed, and the entries that changed the members of the old group have no effect.
//
// With an address, other nodes can be added to the group, and the log is in a folder
// below dir with the name of the node. Without an address, the group is a state machine
// on one disk, and dir is the folder of its log. If the image is of one of several
// instances, the log is in a folder below that, named by the number of the instance.
func (i *Image) Found(dir, node, address string) (err error) {
	if err := checkText(node, address); err != nil {
		return fmt.Errorf("raft: %w", err)
	}
	c := i.config(dir, node, address)
	if err := prepareFolder(&c); err != nil {
		return err
	}
	disk, err := OpenFolder(c.Dir, wal.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, disk.Close()) }()
	r, err := disk.Record()
	if err != nil {
		return err
	}
	hasLog, err := disk.HasLog()
	if err != nil {
		return err
	}
	if hasLog || r.ID != 0 {
		return fmt.Errorf("raft: %s is already the folder of a node; name another", c.Dir)
	}
	return i.foundIn(c.Dir, disk, node, address)
}

// Others returns the members after all entries of the image, without the original node.
func (i *Image) Others() ([]Member, error) {
	all := members{}
	all.apply(i.Members, nil)
	err := i.entries(func(e *pb.Entry) error {
		all.apply(changedBy(e), nil)
		return nil
	})
	delete(all, i.id)
	return all.list(), err
}

// LogPath returns the path at which Found creates the log.
func (i *Image) LogPath(dir, node, address string) string {
	c := i.config(dir, node, address)
	return c.Dir
}

// config returns the configuration of a node, with the folder of its log, if dir is the path of the
// log in the topology file.
func (i *Image) config(dir, node, address string) Config {
	c := Config{Dir: dir, Node: node}
	if address != "" {
		c.Peers = map[string]string{node: address}
	}
	_, c.Instance, c.Instances = instanceOf(i.Group)
	c.resolveDir()
	return c
}

// foundIn calls found for the disk in a folder. Until the folder is complete, nodes refuse
// it.
func (i *Image) foundIn(dir string, disk Disk, node, address string) error {
	if err := setUnfinished(dir, true); err != nil {
		return err
	}
	if err := i.found(disk, node, address); err != nil {
		return err
	}
	return setUnfinished(dir, false)
}

// found writes the log of the first member of a new group, and then its record.
func (i *Image) found(disk Disk, node, address string) (err error) {
	first := []Member{{ID: newID(), Name: node, Address: address}}
	r := Record{Topology: i.Topology, Group: i.Group, Name: node, ID: first[0].ID, GroupID: hashGroup(first, newSalt()), Since: i.Index}
	log, _, err := disk.Open(r.identity())
	if err != nil {
		return err
	}
	s := &pb.Snapshot{
		Data:     appendHead(nil, head{members: first, groupID: r.GroupID}),
		Metadata: &pb.SnapshotMetadata{Index: new(i.Index), Term: new(i.Term), ConfState: &pb.ConfState{Voters: []uint64{r.ID}}},
	}
	if err := errors.Join(i.write(log, s), log.Close()); err != nil {
		return err
	}
	return disk.SetRecord(r)
}

const (
	imageBatch = 1 << 20   // bytes of entries that are written at once
	imageWhole = 512 << 20 // limit of a state that is written as one piece; larger ones are streams
)

// writeState writes the snapshot.
func (i *Image) writeState(log wal.Log, s *pb.Snapshot) error {
	state, err := i.state()
	if err != nil {
		return err
	}
	defer func() { _ = state.Close() }() // it was read to its end
	if !i.body && i.bytes <= imageWhole {
		b, err := io.ReadAll(state)
		if err != nil {
			return err
		}
		s.Data = append(s.Data, b...)
		return log.SaveSnapshot(s)
	}
	w, err := log.CreateSnapshot()
	if err != nil {
		return err
	}
	if _, err := io.Copy(w, state); err != nil {
		return errors.Join(err, w.Abort())
	}
	return errors.Join(w.Commit(s), w.Abort())
}

// write writes the state with the head in s, and then the entries.
func (i *Image) write(log wal.Log, s *pb.Snapshot) error {
	if err := i.writeState(log, s); err != nil {
		return err
	}
	var list []*pb.Entry
	size, last := 0, i.Index
	save := func() error {
		h := &pb.HardState{Term: new(i.LastTerm), Vote: new(uint64(0)), Commit: new(last)}
		err := log.Save(h, list, true)
		list, size = list[:0], 0
		return err
	}
	err := i.entries(func(e *pb.Entry) error {
		last++
		if e.GetIndex() != last {
			return fmt.Errorf("%w: entry %d follows entry %d", ErrImage, e.GetIndex(), last-1)
		}
		if e.GetType() != pb.EntryNormal {
			e = &pb.Entry{Index: e.Index, Term: e.Term}
		}
		list = append(list, e)
		if size += len(e.GetData()); size >= imageBatch {
			return save()
		}
		return nil
	})
	if err != nil {
		return err
	}
	return save()
}
