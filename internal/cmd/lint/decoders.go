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

// decoderName matches the names of functions that decode bytes. A function with such a name and a
// parameter of decoderInput is a decoder.
var decoderName = regexp.MustCompile(`^(read|Read|decode|Decode|parse|Parse|consume|Consume|unpack|cut[A-Z]|check(Packet|Part|Stream)$)`)

var decoderInput = []string{"[]byte", "io.Reader", "io.ReaderAt", "*bufio.Reader", "*os.File", "*input"}

// fuzzed has the fuzz target of each decoder in the runtime: the bytes are from a socket or a disk,
// and an attacker may have written them. The target may call the decoder through others, and must limit
// what it allocates. A text with a space is the reason why a decoder needs no target.
var fuzzed = map[string]map[string]string{
	"runtime/cluster": {
		"cutEnvelope": "FuzzEnvelope", "read": "FuzzPassedOn", "readOpen": "FuzzPairs", "readChunk": "FuzzPairs",
	},
	"runtime/cluster/session": {
		"parseHeader": "FuzzReceive", "parseHello": "FuzzReceive", "parseRefusal": "FuzzReceive", "unpack": "FuzzUnpack",
	},
	"runtime/cluster/table": {"ReadCommand": "FuzzCommand", "ReadOutcome": "FuzzOutcome", "ReadState": "FuzzState"},
	"runtime/cluster/table/broadcast": {
		"readMessage": "FuzzMessage", "readNumber": "FuzzMessage", "readEntry": "FuzzLog", "parse": "FuzzLog", "readFrame": "FuzzLog",
		"readRecord": "FuzzLog", "ReadPlain": "FuzzPlain",
	},
	"runtime/cluster/table/etcd": {"readEntry": "FuzzEntry", "readHead": "FuzzEntry", "readLast": "FuzzEntry"},
	"runtime/cluster/table/raft": {"readMessage": "FuzzMessage"},
	"runtime/durable/core": {
		"decode": "FuzzDecode", "decodePromise": "FuzzDecode", "decodeHead": "FuzzDecode", "decodeSchedule": "FuzzDecode",
		"decodeTask": "FuzzDecode", "readUndelivered": "FuzzDecode",
	},
	"runtime/durable/protocol": {
		"DecodeMessage": "FuzzDecodeMessage", "DecodeRequest": "FuzzDecodeRequest", "DecodeResponse": "FuzzDecodeResponse",
	},
	"runtime/durable/replicated": {"consumeState": "FuzzEntry", "consumeEntry": "FuzzEntry"},
	"runtime/durable/store": {
		"decodeFormat": "FuzzStore", "parseMeta": "FuzzStore", "parseNode": "FuzzStore", "decodeTotals": "FuzzStore",
		"readMeta": "FuzzStore", "readAhead": "it decodes nothing: it reads the file so that the system has it in memory",
	},
	"runtime/errtop":            {"decode": "FuzzDecode"},
	"runtime/fsm":               {"Decode": "FuzzApply", "consume": "FuzzApply", "decode": "FuzzRestore"},
	"runtime/member":            {"decodeMessage": "FuzzDecode"},
	"runtime/member/memberlist": {"parseMeta": "FuzzPackets", "checkPacket": "FuzzPackets", "checkPart": "FuzzPackets", "checkStream": "FuzzPackets"},
	"runtime/piper":             {"cutMessage": "FuzzChunk"},
	"runtime/process": {
		"decode": "FuzzFrames", "readLines": "FuzzLines", "readControl": "it reads one byte at a time, and only compares it",
	},
	"runtime/raft": {
		"readHead": "FuzzBackup", "readState": "FuzzBackup", "readEntries": "FuzzBackup",
		"readSnapshot": "FuzzMessages", "readIntroduction": "FuzzMessages", "readNotice": "FuzzMessages", "readMembers": "FuzzMessages",
		"readMember": "FuzzMessages", "parseEngine": "FuzzMessages", "readRecord": "FuzzMessages", "readPart": "FuzzMessages",
		"readReceipt": "FuzzMessages",
	},
	"runtime/raft/wal": {
		"parseIdentity": "FuzzSegment", "parseNumber": "FuzzSegment", "parseText": "FuzzSegment", "parseMark": "FuzzSegment",
		"parseRecord": "FuzzSegment", "parseHeader": "FuzzSegment", "parseVarint": "FuzzSegment", "parseFields": "FuzzSegment",
		"parseEntry": "FuzzSegment", "parseState": "FuzzSegment", "parseSnapshot": "FuzzSegment", "readHead": "FuzzSnapshot",
		"read": "FuzzSnapshot", "readNote": "it reads 128 bytes at most, with fmt.Sscanf",
	},
	"runtime/transport/grpc": {"readFrame": "FuzzReadFrame", "readMessages": "FuzzReadFrame", "readChunk": "FuzzReadFrame"},
	"runtime/wire":           {"Read": "it decodes nothing: generated_test/wire FuzzConsume calls the methods of its result"},
}

// decoders finds decoders of the runtime without a fuzz target, and targets without a limit of memory.
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
		if !strings.HasPrefix(p, "runtime/") || !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
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
	if !decoderName.MatchString(f.Name.Name) || f.Recv != nil && f.Name.Name == "Read" { // a method Read fills its parameter
		return false
	}
	return slices.ContainsFunc(f.Type.Params.List, func(p *ast.Field) bool {
		return slices.Contains(decoderInput, types.ExprString(p.Type))
	})
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
