package raft

import (
	"errors"
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// The messages between nodes when the controllers carry them. They have the content of
// the engine's messages: Masterbeat and FollowerResponse also carry the other messages of
// leaders and followers. GroupID is the identity of the sender's group, or 0 if the
// sender has none yet. FromID and ToID are the ids of the nodes. ToID is 0 if the sender
// does not know it.

// RequestVote asks for a vote.
type RequestVote struct {
	GroupID, FromID, ToID uint64
	From, To              string // names of nodes
	Term                  uint64 // of the election
	LastIndex             uint64 // of the candidate's log; nodes with a later log refuse
	LastTerm              uint64
	Pre                   bool   // the candidate asks whether it would win, before it disturbs the group
	Context               []byte // of the engine: whether a leader has started the election
}

// ResponseVote answers a RequestVote.
type ResponseVote struct {
	GroupID, FromID, ToID uint64
	From, To              string
	Term                  uint64
	Rejected              bool
	Pre                   bool
}

// BeatKind is the kind of a Masterbeat.
type BeatKind uint8

const (
	BeatAppend     BeatKind = iota // appends the entries after PrevIndex
	BeatAlive                      // is a heartbeat, without entries
	BeatElect                      // makes the receiver the next leader
	BeatReadAnswer                 // PrevIndex answers a ResponseRead
)

// Masterbeat is a message of a leader to a follower.
type Masterbeat struct {
	GroupID, FromID, ToID uint64
	From, To              string
	Kind                  BeatKind
	Term                  uint64
	PrevIndex, PrevTerm   uint64      // of the entry before the first one in Entries
	MinAccepted           uint64      // index up to which entries are committed, limited to the entries that the follower is known to have
	Entries               []RaftEntry // the appended part of the log
	Context               []byte      // of reads
}

// RaftEntry is an entry of the log.
type RaftEntry struct {
	Index, Term uint64
	Kind        int32 // type of the engine: 0 for data, others change the members
	Data        []byte
}

// ResponseKind is the kind of a FollowerResponse.
type ResponseKind uint8

const (
	ResponseAppend       ResponseKind = iota // answers BeatAppend and InstallSnapshot
	ResponseAlive                            // answers BeatAlive
	ResponsePropose                          // forwards proposals
	ResponseRead                             // asks for the index that a read must wait for
	ResponseTransfer                         // asks to make the sender the leader
	ResponseIntroduction                     // holds an introduction of the sender in Context
	ResponseNotice                           // says why messages of the receiver are ignored, in Context
	ResponsePart                             // answers an InstallSnapshot, in Context
)

// FollowerResponse is a message of a follower to a leader.
type FollowerResponse struct {
	GroupID, FromID, ToID uint64
	From, To              string
	Kind                  ResponseKind
	Term                  uint64
	MaxSaved              uint64 // index up to which the follower's disk has the log
	Rejected              bool   // MaxSaved was refused; the logs can match at most up to Hint, of term HintTerm
	Hint, HintTerm        uint64
	Entries               []RaftEntry
	Context               []byte
}

// InstallSnapshot is a part of a snapshot, which replaces entries that the leader does
// not have any more. All parts of a snapshot have the same fields except Offset and Data.
// A part has at most 256 KiB of the state.
type InstallSnapshot struct {
	GroupID, FromID, ToID uint64
	From, To              string
	Term                  uint64
	Index, SnapshotTerm   uint64 // of the last entry that the snapshot covers
	Members               ConfState
	Head                  []byte // the names and addresses of the members
	Transfer              uint64 // a number that the sender has chosen for the transfer
	Size, Offset          uint64 // bytes of the state, and the offset of Data in it
	Data                  []byte
}

// ConfState holds the ids of the members at a snapshot.
type ConfState struct {
	Voters, Learners, VotersOutgoing, LearnersNext []uint64
	AutoLeave                                      bool
}

// typed converts the content of an envelope to one of these messages; nil: there is none
// for it.
func typed(from, to string, b []byte) any {
	e, payload, err := openEnvelope(b)
	if err != nil {
		return nil
	}
	m := new(pb.Message)
	switch of, ok := responseKinds[e.kind]; {
	case ok:
		return &FollowerResponse{GroupID: e.groupID, FromID: e.id, From: from, To: to, Kind: of, Context: payload}
	case e.kind == kindPart:
		return typedPart(from, to, e.groupID, payload)
	case proto.Unmarshal(payload, m) != nil:
		return nil
	}
	return typedMessage(from, to, e.groupID, m)
}

// responseKinds are the contents that FollowerResponse carries without conversion.
var responseKinds = map[kind]ResponseKind{kindIntroduction: ResponseIntroduction, kindNotice: ResponseNotice, kindReceipt: ResponsePart}

// typedPart converts a part of a snapshot to an InstallSnapshot; nil: it is not a valid
// part.
func typedPart(from, to string, groupID uint64, payload []byte) any {
	p, err := readPart(payload)
	if err != nil {
		return nil
	}
	m := p.message
	meta := m.GetSnapshot().GetMetadata()
	c := meta.GetConfState()
	return &InstallSnapshot{
		GroupID: groupID, FromID: m.GetFrom(), ToID: m.GetTo(), From: from, To: to, Term: m.GetTerm(), Index: meta.GetIndex(), SnapshotTerm: meta.GetTerm(),
		Members: ConfState{c.GetVoters(), c.GetLearners(), c.GetVotersOutgoing(), c.GetLearnersNext(), c.GetAutoLeave()},
		Head:    m.GetSnapshot().GetData(), Transfer: p.transfer, Size: p.size, Offset: p.offset, Data: p.data,
	}
}

// untypedPart reverses typedPart.
func untypedPart(v *InstallSnapshot) ([]byte, error) {
	c := v.Members
	m := &pb.Message{Type: pb.MsgSnap.Enum(), From: &v.FromID, To: &v.ToID, Term: &v.Term}
	m.Snapshot = &pb.Snapshot{Data: v.Head, Metadata: &pb.SnapshotMetadata{Index: &v.Index, Term: &v.SnapshotTerm, ConfState: &pb.ConfState{
		Voters: c.Voters, Learners: c.Learners, VotersOutgoing: c.VotersOutgoing, LearnersNext: c.LearnersNext, AutoLeave: &c.AutoLeave,
	}}}
	text, err := proto.Marshal(m)
	if err != nil || len(v.Data) > partBytes {
		return nil, errors.Join(errPart, err)
	}
	p := part{transfer: v.Transfer, size: v.Size, offset: v.Offset, data: v.Data}
	return p.append(envelope{kindPart, v.GroupID, v.FromID}.append(nil), text), nil
}

// typedMessage converts a message of the engine; nil: there is no message for it.
func typedMessage(from, to string, groupID uint64, m *pb.Message) any {
	fromID, toID := m.GetFrom(), m.GetTo()
	switch m.GetType() {
	case pb.MsgVote, pb.MsgPreVote:
		return &RequestVote{
			GroupID: groupID, FromID: fromID, ToID: toID, From: from, To: to, Term: m.GetTerm(), LastIndex: m.GetIndex(), LastTerm: m.GetLogTerm(),
			Pre: m.GetType() == pb.MsgPreVote, Context: m.Context,
		}
	case pb.MsgVoteResp, pb.MsgPreVoteResp:
		return &ResponseVote{GroupID: groupID, FromID: fromID, ToID: toID, From: from, To: to, Term: m.GetTerm(), Rejected: m.GetReject(), Pre: m.GetType() == pb.MsgPreVoteResp}
	case pb.MsgApp, pb.MsgHeartbeat, pb.MsgTimeoutNow, pb.MsgReadIndexResp:
		b := &Masterbeat{
			GroupID: groupID, FromID: fromID, ToID: toID, From: from, To: to, Term: m.GetTerm(), PrevIndex: m.GetIndex(), PrevTerm: m.GetLogTerm(),
			MinAccepted: m.GetCommit(), Entries: typedEntries(m.Entries), Context: m.Context,
		}
		b.Kind = map[pb.MessageType]BeatKind{pb.MsgHeartbeat: BeatAlive, pb.MsgTimeoutNow: BeatElect, pb.MsgReadIndexResp: BeatReadAnswer}[m.GetType()]
		return b
	case pb.MsgAppResp, pb.MsgHeartbeatResp, pb.MsgProp, pb.MsgReadIndex, pb.MsgTransferLeader:
		r := &FollowerResponse{
			GroupID: groupID, FromID: fromID, ToID: toID, From: from, To: to, Term: m.GetTerm(), MaxSaved: m.GetIndex(), Rejected: m.GetReject(),
			Hint: m.GetRejectHint(), HintTerm: m.GetLogTerm(), Entries: typedEntries(m.Entries), Context: m.Context,
		}
		r.Kind = map[pb.MessageType]ResponseKind{
			pb.MsgHeartbeatResp: ResponseAlive, pb.MsgProp: ResponsePropose, pb.MsgReadIndex: ResponseRead, pb.MsgTransferLeader: ResponseTransfer,
		}[m.GetType()]
		return r
	}
	return nil
}

func typedEntries(list []*pb.Entry) (entries []RaftEntry) {
	for _, e := range list {
		entries = append(entries, RaftEntry{e.GetIndex(), e.GetTerm(), int32(e.GetType()), e.Data})
	}
	return entries
}

// untyped reverses typed.
func untyped(v any) (from string, b []byte, err error) {
	switch v := v.(type) {
	case *InstallSnapshot:
		b, err := untypedPart(v)
		return v.From, b, err
	case *FollowerResponse:
		for kind, of := range responseKinds {
			if v.Kind == of {
				return v.From, append(envelope{kind, v.GroupID, v.FromID}.append(nil), v.Context...), nil
			}
		}
	}
	from, groupID, m, err := untypedMessage(v)
	if err != nil {
		return "", nil, err
	}
	b, err = proto.MarshalOptions{}.MarshalAppend(envelope{kindRaft, groupID, m.GetFrom()}.append(nil), m)
	return from, b, err
}

// untypedMessage reverses typedMessage.
func untypedMessage(v any) (from string, groupID uint64, m *pb.Message, err error) {
	m = &pb.Message{}
	switch v := v.(type) {
	case *RequestVote:
		from, groupID, m.From, m.To = v.From, v.GroupID, &v.FromID, &v.ToID
		kind := pb.MsgVote
		if v.Pre {
			kind = pb.MsgPreVote
		}
		m.Type, m.Term, m.Index, m.LogTerm, m.Context = kind.Enum(), &v.Term, &v.LastIndex, &v.LastTerm, v.Context
	case *ResponseVote:
		from, groupID, m.From, m.To = v.From, v.GroupID, &v.FromID, &v.ToID
		kind := pb.MsgVoteResp
		if v.Pre {
			kind = pb.MsgPreVoteResp
		}
		m.Type, m.Term, m.Reject = kind.Enum(), &v.Term, &v.Rejected
	case *Masterbeat:
		from, groupID, m.From, m.To = v.From, v.GroupID, &v.FromID, &v.ToID
		kinds := []pb.MessageType{pb.MsgApp, pb.MsgHeartbeat, pb.MsgTimeoutNow, pb.MsgReadIndexResp}
		if int(v.Kind) >= len(kinds) {
			return "", 0, nil, fmt.Errorf("%w: a Masterbeat of kind %d", ErrMessage, v.Kind)
		}
		m.Type, m.Term, m.Index, m.LogTerm, m.Commit = kinds[v.Kind].Enum(), &v.Term, &v.PrevIndex, &v.PrevTerm, &v.MinAccepted
		m.Entries, m.Context = untypedEntries(v.Entries), v.Context
	case *FollowerResponse:
		from, groupID, m.From, m.To = v.From, v.GroupID, &v.FromID, &v.ToID
		kinds := []pb.MessageType{pb.MsgAppResp, pb.MsgHeartbeatResp, pb.MsgProp, pb.MsgReadIndex, pb.MsgTransferLeader}
		if int(v.Kind) >= len(kinds) {
			return "", 0, nil, fmt.Errorf("%w: a FollowerResponse of kind %d", ErrMessage, v.Kind)
		}
		m.Type, m.Term, m.Index, m.Reject, m.RejectHint, m.LogTerm = kinds[v.Kind].Enum(), &v.Term, &v.MaxSaved, &v.Rejected, &v.Hint, &v.HintTerm
		m.Entries, m.Context = untypedEntries(v.Entries), v.Context
	default:
		return "", 0, nil, fmt.Errorf("%w: a %T", ErrMessage, v)
	}
	return from, groupID, m, nil
}

func untypedEntries(list []RaftEntry) (entries []*pb.Entry) {
	for _, e := range list {
		entries = append(entries, &pb.Entry{Index: new(e.Index), Term: new(e.Term), Type: pb.EntryType(e.Kind).Enum(), Data: e.Data})
	}
	return entries
}
