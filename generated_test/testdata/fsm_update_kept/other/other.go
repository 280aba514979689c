package other

type Accounts struct {
	All  []any
	Last any
}

type Order struct{ Cents int }

func (o *Order) Update(s *Accounts) error {
	kept := *o
	s.All = append(s.All, &kept)
	s.Last = o
	return nil
}
