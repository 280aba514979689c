package fsmeventhandlersmissing

type Accounts struct{ Cents map[string]int64 }

type Transfer struct{ To *string }

func (*Transfer) Update(*Accounts) error { return nil }

type Audit struct{}

type Board struct{}

func (Board) ReceiveLedgerApplied(Transfer)             {}
func (Board) ReceiveLedgerLeadership(*LedgerLeadership) {}
