package launch

import (
	"bytes"
	"io"
	"sync"
)

// lineBytesMax is the length at which a line of a node is ended. A node that writes no line
// ends must not fill the memory.
const lineBytesMax = 64 << 10

// prefixed passes the output of a node on in whole lines, each with the name of the node.
// So the lines of several nodes are not mixed.
type prefixed struct {
	mu     *sync.Mutex // of all nodes
	out    io.Writer
	prefix string
	line   []byte // the begin of a line without an end
}

// Write writes output of the node. Errors of the output are ignored: the node must not stop
// because the reader of its output has ended.
func (p *prefixed) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(b)
	var text []byte
	for {
		line, rest, found := bytes.Cut(b, []byte("\n"))
		for len(p.line)+len(line) > lineBytesMax {
			room := lineBytesMax - len(p.line)
			text = p.end(text, line[:room])
			line = line[room:]
		}
		if !found {
			p.line = append(p.line, line...)
			break
		}
		text = p.end(text, line)
		b = rest
	}
	if len(text) > 0 {
		_, _ = p.out.Write(text)
	}
	return n, nil
}

// end appends a complete line to text.
func (p *prefixed) end(text, rest []byte) []byte {
	text = append(append(append(text, p.prefix...), p.line...), rest...)
	p.line = p.line[:0]
	return append(text, '\n')
}

// close writes what has no line end.
func (p *prefixed) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.line) > 0 {
		_, _ = p.out.Write(p.end(nil, nil))
	}
}
