package main

// Audit counts the outcomes of the transfers that this process handled.
type Audit struct{ figures Figures }

func (a *Audit) ReceiveEntry(m Entry) {
	switch m.Outcome {
	case Booked:
		a.figures.Booked++
		a.figures.Cents += m.Cents
	case Refused:
		a.figures.Refused++
	case Unknown:
		a.figures.Unknown++
	}
}

func (a *Audit) ReceiveInquiry(Inquiry) Figures { return a.figures }
