package handlerwithoutreply

type Ask struct{}

type Answer struct{}

type Desk struct{}

func (*Desk) ReceiveAsk(Ask) error { return nil }
