// Package clonefails has messages whose Clone panics.
package clonefails

import "sync/atomic"

// Text is a message that holds a pointer. Clone panics if it is nil.
type Text struct {
	To   int
	Text *string
}

func (t Text) Clone() Text { s := *t.Text; return Text{t.To, &s} }

// Begin makes the source send a Text, or wait after it has sent an Other.
type Begin struct {
	Text Text
	Wait chan struct{}
}

type Other struct{}

type Source struct{}

func (*Source) ReceiveBegin(m *Begin, out *SourceSender) {
	if m.Wait == nil {
		out.SendText(m.Text)
		return
	}
	out.SendOther(Other{})
	<-m.Wait
}

// Texts counts the messages that all instances of Many got.
type Many struct{ Texts *atomic.Int64 }

func (m *Many) ReceiveText(t *Text) { m.Texts.Add(1) }

type One struct{ Others chan struct{} }

func (o *One) ReceiveText(*Text)  {}
func (o *One) ReceiveOther(Other) { o.Others <- struct{}{} }
