package disksim

import "math/rand/v2"

// Faults are the probabilities with which a sync, although it succeeds, treats one of its
// writes wrongly.
type Faults struct {
	Lost        float64 // the disk keeps what it had
	Torn        float64 // only the first or only the last sectors are written
	Misdirected float64 // the data is written to another page
}

// lie returns the writes that the disk carries out, and whether they differ from the given
// ones.
func (f Faults) lie(rng *rand.Rand, writes []write) (done []write, lied bool) {
	if len(writes) == 0 || f == (Faults{}) {
		return writes, false
	}
	i := rng.IntN(len(writes))
	w := writes[i]
	p := rng.Float64()
	if w.data == nil || p >= f.Lost+f.Torn+f.Misdirected {
		return writes, false
	}
	done = append(done, writes[:i]...)
	switch cut := SectorBytes * (len(w.data) / SectorBytes / 2); {
	case p < f.Lost:
	case p >= f.Lost+f.Torn:
		page := w.at / PageBytes
		to := rng.IntN(max(2*page, page+4))
		if rng.IntN(4) == 0 {
			to = rng.IntN(4) // files keep there what matters most
		}
		if to == page {
			to++
		}
		done = append(done, write{w.at + (to-page)*PageBytes, w.data})
	case cut == 0: // a single sector
	case rng.IntN(2) == 0:
		done = append(done, write{w.at, w.data[:cut]})
	default:
		done = append(done, write{w.at + cut, w.data[cut:]})
	}
	return append(done, writes[i+1:]...), true
}

// Loss decides which part of the unsynced writes a power failure loses.
type Loss struct {
	probability float64
	unit        int
}

// Sectors loses each unsynced sector with a probability.
func Sectors(probability float64) Loss { return Loss{probability, SectorBytes} }

// Pages loses each unsynced page with a probability.
func Pages(probability float64) Loss { return Loss{probability, PageBytes} }

// AnyLoss draws one of several kinds of losses.
func AnyLoss(rng *rand.Rand) Loss {
	kinds := []Loss{Sectors(0), Sectors(0.002), Sectors(0.02), Sectors(0.3), Sectors(0.8), Pages(0.02), Pages(0.3), Pages(0.8), Pages(1)}
	return kinds[rng.IntN(len(kinds))]
}
