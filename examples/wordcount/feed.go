package main

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"unicode"
	"unicode/utf8"
)

// chunkSize limits a chunk, even if a line or a word is longer.
const chunkSize = 32 << 10

// Feed reads files and folders and sends their text in chunks.
type Feed struct {
	paths  []string
	buffer [chunkSize]byte

	Files, Chunks int
	Bytes         int64
}

// Serve reads all paths. It has its own goroutine and may wait for the disk. If the
// splitters are slow, SendChunk waits for them.
func (f *Feed) Serve(_ context.Context, out *FeedSender) error {
	for _, path := range f.paths {
		// A path may be a symbolic link, which WalkDir would not follow.
		path, err := filepath.EvalSymlinks(path)
		if err != nil {
			return err
		}
		if err := filepath.WalkDir(path, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && entry.Name() == ".git":
				return fs.SkipDir
			case !entry.Type().IsRegular():
				return nil
			}
			return f.readFile(path, out)
		}); err != nil {
			return err
		}
	}
	return nil
}

func (f *Feed) readFile(path string, out *FeedSender) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	kept := 0 // bytes at the beginning of the buffer that were not sent yet
	for first := true; ; first = false {
		n, err := io.ReadFull(file, f.buffer[kept:])
		last := err == io.EOF || err == io.ErrUnexpectedEOF
		if err != nil && !last {
			return err
		}
		text := f.buffer[:kept+n]
		if first {
			if isBinary(text) {
				return nil
			}
			f.Files++
		}
		end := len(text)
		if !last {
			end = lastBreak(text)
		}
		if err := f.send(text[:end], out); err != nil {
			return err // topo.ErrStopping: the topology stops
		}
		if last {
			return nil
		}
		kept = copy(f.buffer[:], text[end:])
	}
}

func (f *Feed) send(text []byte, out *FeedSender) error {
	if len(text) == 0 {
		return nil
	}
	if err := out.SendChunk(Chunk{f.Chunks, string(text)}); err != nil {
		return err
	}
	f.Chunks++
	f.Bytes += int64(len(text))
	return nil
}

// isBinary reports whether a file has a zero byte near its beginning, as in git.
func isBinary(start []byte) bool {
	return bytes.IndexByte(start[:min(len(start), 8000)], 0) >= 0
}

// lastBreak returns where a full buffer is cut: after the last character that is not part
// of a word. If the whole buffer is one word, it is cut between two letters.
func lastBreak(text []byte) int {
	ends := func(r rune) bool { return r < utf8.RuneSelf && !unicode.IsLetter(r) }
	if i := bytes.LastIndexFunc(text, ends); i >= 0 {
		return i + 1
	}
	for end := len(text); end > len(text)-utf8.UTFMax; end-- {
		if utf8.RuneStart(text[end-1]) {
			return end - 1
		}
	}
	return len(text)
}
