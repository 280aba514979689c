// Package external has external processors, which goroutines outside the pool use.
package external

type (
	Ask    struct{ ID int }
	Try    struct{ ID int }
	Offer  struct{ ID int }
	Latest struct{ ID int }
	Answer struct{ ID int }
	Line   struct{ Text []byte }
)

func (l Line) Clone() Line { return Line{append([]byte(nil), l.Text...)} }

type Desk struct {
	IDs   []int // in order of arrival
	Lines []string
}

func (d *Desk) ReceiveAsk(m *Ask) (Answer, error) {
	d.IDs = append(d.IDs, m.ID)
	return Answer{m.ID}, nil
}
func (d *Desk) ReceiveTry(m *Try) Answer    { d.IDs = append(d.IDs, m.ID); return Answer(*m) }
func (d *Desk) ReceiveOffer(m Offer) Answer { d.IDs = append(d.IDs, m.ID); return Answer(m) }

func (d *Desk) ReceiveLatest(m *Latest) (Answer, error) {
	d.IDs = append(d.IDs, m.ID)
	return Answer(*m), nil
}

func (d *Desk) ReceiveLine(m Line) error {
	d.Lines = append(d.Lines, string(m.Text))
	m.Text[0] = '!' // the message belongs to this instance
	return nil
}

type Log struct {
	Asks, Offers int
	Lines        []string
}

func (l *Log) ReceiveAsk(m Ask)             { l.Asks++ }
func (l *Log) ReceiveLineFromApi(m *Line)   { l.Lines = append(l.Lines, string(m.Text)) }
func (l *Log) ReceiveLine(m *Line)          { l.Lines = append(l.Lines, string(m.Text)) }
func (l *Log) ReceiveOffer(m *Offer) Answer { l.Offers++; return Answer(*m) }
