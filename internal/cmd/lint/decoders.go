package main

import (
	"fmt"
	"go/ast"
	"go/types"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// A function is a decoder if it has a parameter of decoderInput, and either a name that decoderName
// matches, or a call that decoderCall matches. The same is true for decoderText, textName and textCall.
var decoderName = regexp.MustCompile(`^(read|Read|decode|Decode|parse|Parse|consume|Consume|unpack|cut[A-Z]|check(Packet|Part|Stream)$)`)

var decoderCall = regexp.MustCompile(`^(binary\.(Uvarint|Varint|LittleEndian\.Uint\d+|BigEndian\.Uint\d+)|protowire\.Consume\w+|proto\.Unmarshal|json\.(Unmarshal|NewDecoder)|io\.(ReadAll|ReadFull))$`)

var decoderInput = []string{"[]byte", "[][]byte", "[3][]byte", "json.RawMessage", "io.Reader", "io.ReaderAt", "*bufio.Reader", "*os.File", "*http.Response", "metadata.MD", "*input", "*message", "*pb.Message", "*pb.Entry"}

var (
	textName    = regexp.MustCompile(`^(decode|Decode|parse|Parse)`) // not read: the text is often a path
	textCall    = regexp.MustCompile(`^(json\.(Unmarshal|NewDecoder)|base64\.\w+\.Decode\w*)$`)
	decoderText = []string{"string", "protocol.Value", "*protocol.Promise"}
)

// decoderFolder matches the code that reads bytes from a socket or a disk.
var decoderFolder = regexp.MustCompile(`^(runtime|cmd|gen)/`)

// fuzzed has the fuzz target of each decoder: the bytes are from a socket or a disk,
// and an attacker may have written them. The target may call the decoder through others, and must limit
// what it allocates. A text with a space is the reason why a decoder needs no target.
var fuzzed = map[string]map[string]string{
	"cmd/topoctl/internal/cli":    {"readData": "FuzzValues", "functionOf": "FuzzValues", "errorOf": "FuzzValues"},
	"cmd/topogen/internal/cli":    {"readSnapshot": "it decodes nothing: it reads graph.SnapshotMax bytes at most"},
	"cmd/topogen/internal/launch": {"parseFigures": "FuzzFigures"},
	"gen/bind":                    {"parseModule": "the go command reads the same go.mod first"},
	"gen/cache":                   {"decode": "FuzzDecode"},
	"gen/emit":                    {"ParseIdent": "its text is in a topology that spec has accepted"},
	"gen/graph":                   {"ParseSnapshot": "FuzzSnapshot"},
	"gen/header":                  {"Read": "FuzzInspect"},
	"gen/plan":                    {"parse": "its text is in a topology that spec has accepted"},
	"gen/wire":                    {"parseNumbers": "FuzzNumbers"},
	"runtime/cluster": {
		"parseCommand": "FuzzOperators", "parseRequest": "FuzzOperators", "add": "FuzzOperators",
		"Remove":      "it decodes an object with two names, in an answer of 4 MiB at most, into a struct without lists",
		"cutEnvelope": "FuzzEnvelope", "read": "FuzzPassedOn", "readOpen": "FuzzPairs", "readChunk": "FuzzPairs",
	},
	"runtime/cluster/session": {
		"parseHeader": "FuzzReceive", "parseHello": "FuzzReceive", "parseRefusal": "FuzzReceive", "unpack": "FuzzUnpack",
		"items": "FuzzUnpack", "enter": "FuzzUnpack", "fragment": "FuzzUnpack",
	},
	"runtime/cluster/table": {"ReadCommand": "FuzzCommand", "ReadOutcome": "FuzzOutcome", "ReadState": "FuzzState", "parseDescription": "FuzzPlanError"},
	"runtime/cluster/table/broadcast": {
		"readMessage": "FuzzMessage", "readNumber": "FuzzMessage", "readResult": "FuzzMessage", "followsFrame": "FuzzLog", "readEntry": "FuzzLog", "parse": "FuzzLog", "readFrame": "FuzzLog",
		"readRecord": "FuzzLog", "ReadPlain": "FuzzPlain",
	},
	"runtime/cluster/table/etcd": {"readEntry": "FuzzEntry", "readHead": "FuzzEntry", "readLast": "FuzzEntry"},
	"runtime/cluster/table/raft": {"readMessage": "FuzzMessage"},
	"runtime/durable": {
		"decode": "FuzzValues", "appendDecoded": "FuzzValues", "decodeCall": "FuzzValues", "decodeParameter": "FuzzValues", "rejection": "FuzzValues",
		"sameJSON": "FuzzValues", "equalArgument": "FuzzValues", "Decode": "FuzzValues", "unmarshal": "FuzzValues", "unmarshalStep": "FuzzValues",
		"parse": "it cuts the id of a promise, without a copy",
	},
	"runtime/durable/client": {"refusal": "it reads 64 KiB at most, and protocol decodes them"},
	"runtime/durable/engine": {"parse": "it cuts an address, without a copy"},
	"runtime/durable/local":  {"parse": "the addresses are those of this process: there is no socket"},
	"runtime/durable/core": {
		"parseCron": "FuzzText", "openPage": "FuzzText", "splitTime": "FuzzText", "unseal": "FuzzText",
		"decode": "FuzzDecode", "decodePromise": "FuzzDecode", "decodeHead": "FuzzDecode", "decodeSchedule": "FuzzDecode",
		"decodeTask": "FuzzDecode", "readUndelivered": "FuzzDecode",
	},
	"runtime/durable/protocol": {
		"DecodeMessage": "FuzzDecodeMessage", "DecodeRequest": "FuzzDecodeRequest", "DecodeResponse": "FuzzDecodeResponse",
	},
	"runtime/durable/replicated": {"consumeState": "FuzzEntry", "consumeEntry": "FuzzEntry"},
	"runtime/durable/store": {
		"decodeFormat": "FuzzStore", "parseMeta": "FuzzStore", "parseNode": "FuzzStore", "decodeTotals": "FuzzStore",
		"readMeta": "FuzzStore", "stored": "FuzzStore", "readAhead": "it decodes nothing: it reads the file so that the system has it in memory",
	},
	"runtime/errtop": {"decode": "FuzzDecode", "field": "FuzzDecode", "mapEntry": "FuzzDecode", "next": "FuzzDecode"},
	"runtime/fsm":    {"Decode": "FuzzApply", "consume": "FuzzApply", "decode": "FuzzRestore", "parseDescription": "FuzzCompatible"},
	"runtime/member": {"decodeMessage": "FuzzDecode"},
	"runtime/member/memberlist": {
		"parseMeta": "FuzzPackets", "checkPacket": "FuzzPackets", "checkPart": "FuzzPackets", "checkStream": "FuzzPackets",
		"receive": "it reads nine bytes at most, and checkPacket checks the others", "receiveSegment": "it reads a head of 13 bytes",
	},
	"runtime/piper/border": {
		"cutMessage": "FuzzChunk", "arrive": "it reads two numbers, and the generated decoder the others", "reply": "it reads a number, and the generated decoder the others",
	},
	"runtime/process": {
		"decode": "FuzzFrames", "body": "FuzzFrames", "parseValue": "FuzzVariable", "readLines": "FuzzLines", "readControl": "it reads one byte at a time, and only compares it",
	},
	"runtime/raft": {
		"readHead": "FuzzBackup", "readState": "FuzzBackup", "readEntries": "FuzzBackup",
		"readSnapshot": "FuzzMessages", "readIntroduction": "FuzzMessages", "readNotice": "FuzzMessages", "readMembers": "FuzzMessages",
		"readMember": "FuzzMessages", "parseEngine": "FuzzMessages", "readRecord": "FuzzMessages", "readPart": "FuzzMessages",
		"readReceipt": "FuzzMessages", "openEnvelope": "FuzzMessages", "typed": "FuzzMessages", "changedBy": "FuzzMessages", "takeTimes": "FuzzMessages",
		"parseCommand": "FuzzMessages", "open": "FuzzBackup", "applyChange": "it decodes what changedBy does", "setIndex": "it reads eight bytes",
		"Operate": "the answer has 4 MiB at most, and a group in it takes some hundred bytes", "hashGroup": "it decodes nothing: it reads eight bytes of a hash",
	},
	"runtime/raft/wal": {
		"parseIdentity": "FuzzSegment", "parseNumber": "FuzzSegment", "parseText": "FuzzSegment", "parseMark": "FuzzSegment",
		"parseRecord": "FuzzSegment", "parseHeader": "FuzzSegment", "parseVarint": "FuzzSegment", "parseFields": "FuzzSegment",
		"parseEntry": "FuzzSegment", "parseState": "FuzzSegment", "parseSnapshot": "FuzzSegment", "readHead": "FuzzSnapshot",
		"read": "FuzzSnapshot", "findProof": "FuzzSegment", "allZero": "it decodes nothing: it compares", "readNote": "it reads 128 bytes at most, with fmt.Sscanf",
	},
	"runtime/transport/certs": {"Parse": "FuzzParse"},
	"runtime/transport/grpc": {
		"readFrame": "FuzzReadFrame", "readMessages": "FuzzReadFrame", "readChunk": "FuzzReadFrame", "readHello": "FuzzHello",
	},
	"runtime/wire": {
		"Read": "it decodes nothing: generated_test/wire FuzzConsume calls the methods of its result", "varints": "it decodes nothing: it counts", "varintAt": "it returns a number",
	},
}

// decoders finds decoders without a fuzz target, and targets without a limit of memory.
func decoders(r *repo) (found []finding, err error) {
	targets, err := r.fuzzTargets()
	if err != nil {
		return nil, err
	}
	paths, err := r.paths()
	if err != nil {
		return nil, err
	}
	seen := make(map[string]bool) // folder and name
	for _, p := range paths {
		if !decoderFolder.MatchString(p) || !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
			continue
		}
		file, err := r.parse(p)
		if err != nil {
			return nil, err
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !isDecoder(f) {
				continue
			}
			r.count(1)
			folder, name := path.Dir(p), f.Name.Name
			seen[folder+" "+name] = true
			target := fuzzed[folder][name]
			fuzz := targets[folder+" "+target]
			switch {
			case target == "":
				found = append(found, r.at(f.Pos(), "write a fuzz target for the decoder %s, and add it to internal/cmd/lint/decoders.go", name))
			case strings.Contains(target, " "): // a reason
			case fuzz == nil:
				found = append(found, r.at(f.Pos(), "write the fuzz target %s, which internal/cmd/lint/decoders.go names for %s", target, name))
			case callOf(fuzz, "allocated", "Within") == nil:
				found = append(found, r.at(fuzz.Pos(), "limit what %s allocates for %s: call allocated.Within", target, name))
			}
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(fuzzed)) {
		for _, name := range slices.Sorted(maps.Keys(fuzzed[folder])) {
			if r.exists(folder) && !seen[folder+" "+name] {
				found = append(found, finding{folder, 0, fmt.Sprintf("remove %s from internal/cmd/lint/decoders.go: there is no such decoder", name)})
			}
		}
	}
	return found, nil
}

func isDecoder(f *ast.FuncDecl) bool {
	if f.Recv != nil && f.Name.Name == "Read" { // a method Read fills its parameter
		return false
	}
	return decodes(f, decoderInput, decoderName, decoderCall) || decodes(f, decoderText, textName, textCall)
}

func decodes(f *ast.FuncDecl, inputs []string, name, call *regexp.Regexp) (is bool) {
	if !slices.ContainsFunc(f.Type.Params.List, func(p *ast.Field) bool { return slices.Contains(inputs, types.ExprString(p.Type)) }) {
		return false
	}
	is = name.MatchString(f.Name.Name)
	ast.Inspect(f, func(n ast.Node) bool {
		if c, ok := n.(*ast.CallExpr); ok {
			is = is || call.MatchString(types.ExprString(c.Fun))
		}
		return !is
	})
	return is
}

// fuzzTargets returns the fuzz targets by folder and name.
func (r *repo) fuzzTargets() (map[string]*ast.FuncDecl, error) {
	byFolder, err := r.testFiles()
	if err != nil {
		return nil, err
	}
	targets := make(map[string]*ast.FuncDecl)
	for folder, files := range byFolder {
		for _, p := range files {
			file, err := r.parse(p)
			if err != nil {
				return nil, err
			}
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Fuzz") {
					targets[folder+" "+f.Name.Name] = f
				}
			}
		}
	}
	return targets, nil
}
