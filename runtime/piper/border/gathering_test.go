package border

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/topo"
)

// TestGathering checks what a call returns that goes to two instances of this node and to
// two instances on each of some other nodes.
func TestGathering(t *testing.T) {
	reply := func(instance byte, text string) []byte { return append([]byte{instance}, text...) }
	type cast = castCall[string]
	_, x := testBorder(t)
	answered := func(g *piper.Gathering[string]) { // by both instances of this node
		for i, text := range []string{"a", "b"} {
			r := piper.Part(g, i, "message")
			r.Reply(text)
		}
	}
	for _, c := range []struct {
		name         string
		do           func(g *piper.Gathering[string], c *cast)
		want, err    string
		answered, of int // with an error
		ends         bool
	}{
		{name: "all", do: func(g *piper.Gathering[string], c *cast) {
			c.reply("n3", reply(1, "f"), nil)
			c.reaches(2)
			c.reply("n2", reply(1, "d"), nil)
			answered(g)
			c.reply("n3", reply(0, "e"), nil)
			c.reply("n2", reply(0, "c"), nil) // the last one completes the call before its message is settled
		}, want: "abcdef", ends: true},
		{name: "no other node", do: func(g *piper.Gathering[string], c *cast) {
			answered(g)
			c.reaches(0)
			c.end(nil)
		}, want: "ab", ends: true},
		{name: "a reply twice", do: func(g *piper.Gathering[string], c *cast) {
			c.reaches(1)
			answered(g)
			c.reply("n2", reply(0, "c"), nil)
			c.reply("n2", reply(0, "x"), nil)
		}, want: "abc", answered: 3, of: 4, err: "canceled"},
		{name: "a wrong instance", do: func(g *piper.Gathering[string], c *cast) {
			c.reaches(1)
			answered(g)
			c.reply("n2", reply(0, "c"), nil)
			c.reply("n2", reply(2, "x"), nil)
			c.end(nil)
		}, want: "abc", answered: 3, of: 4, err: "cannot be decoded", ends: true},
		{name: "a lost node", do: func(g *piper.Gathering[string], c *cast) {
			c.reaches(2)
			answered(g)
			c.reply("n2", reply(0, "c"), nil)
			c.reply("n2", reply(1, "d"), nil)
			c.end(errors.New("n3 is lost"))
			c.reply("n3", reply(0, "x"), nil) // too late
			c.end(nil)
		}, want: "abcd", answered: 4, of: 6, err: "n3 is lost", ends: true},
		{name: "no reply", do: func(g *piper.Gathering[string], c *cast) {
			c.reaches(1)
			answered(g)
			c.end(nil)
		}, want: "ab", answered: 2, of: 4, err: "no reply", ends: true},
		{name: "a handler of another node fails", do: func(g *piper.Gathering[string], c *cast) {
			c.reaches(1)
			answered(g)
			c.reply("n2", nil, errors.New("broken"))
			c.reply("n2", reply(0, "c"), nil)
			c.end(nil)
		}, want: "abc", answered: 3, of: 4, err: "broken", ends: true},
		{name: "a full queue", do: func(g *piper.Gathering[string], c *cast) {
			r := piper.Part(g, 0, "message")
			r.Evicted()
			r = piper.Part(g, 1, "message")
			r.Reply("b")
			c.reaches(1)
			c.reply("n2", reply(0, "c"), nil)
			c.reply("n2", reply(1, "d"), nil)
		}, want: "bcd", answered: 3, of: 4, err: topo.ErrFull.Error(), ends: true},
		{name: "a message that was not sent to other nodes", do: func(g *piper.Gathering[string], _ *cast) {
			answered(g)
			r := piper.Part(g, 2, "message")
			r.Evicted()
		}, want: "ab", answered: 2, of: 4, err: topo.ErrFull.Error(), ends: true},
		{name: "in time", do: func(g *piper.Gathering[string], _ *cast) { answered(g) }, want: "ab", answered: 2, of: 4, err: "canceled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := piper.Gather[string](3)
			g.Assume(2, 2) // as GatherEverywhere does with one other node
			c.do(g, &cast{g, 2, 2, decodeText})
			got, err := g.Wait(canceled(t), x, func(a, b string) string { return a + b })
			partial, failed := errors.AsType[*topo.PartialError](err)
			if ended := !errors.Is(err, context.Canceled); ended != c.ends {
				t.Errorf("the call has ended: %v", ended)
			}
			switch {
			case got != c.want:
				t.Errorf("the reply is %q, want %q", got, c.want)
			case c.err == "" && err != nil || c.err != "" && (!failed || !strings.Contains(err.Error(), c.err)):
				t.Errorf("the error is %v, want %q", err, c.err)
			case failed && fmt.Sprint(partial.Answered, partial.Of) != fmt.Sprint(c.answered, c.of):
				t.Errorf("%d of %d have answered, want %d of %d", partial.Answered, partial.Of, c.answered, c.of)
			}
		})
	}
}
