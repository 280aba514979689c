// Package process has the topology of the scenarios, whose subjects run in processes.
package process

import (
	"github.com/topogen/topogen/generated_test/scenarios"
	"github.com/topogen/topogen/runtime/topo"
)

// Witness writes the reports and events that it receives into a journal.
type Witness struct{ *scenarios.Journal }

func (w *Witness) ReceiveReport(m scenarios.Report)    { w.Report(m) }
func (w *Witness) InputClosed(in WitnessInput)         { w.Note("closed: " + in.String()) }
func (w *Witness) InputRecovered(in WitnessInput)      { w.Note("recovered: " + in.String()) }
func (w *Witness) ProcessorRestarted(p ProcessorIndex) { w.Note("restarted: " + p.String()) }
func (w *Witness) AllInputsClosed()                    { w.Note("closed: all") }

// Bystander is a second receiver of one processor.
type Bystander struct{ *scenarios.Journal }

func (*Bystander) ReceiveReport(scenarios.Report) {}
func (b *Bystander) ProcessorRestarted(p ProcessorIndex) {
	b.Note("restarted, to the bystander: " + p.String())
}

// Stage makes the topology of this package for the scenarios.
func Stage(j *scenarios.Journal) (scenarios.Topology, scenarios.Commands, error) {
	t, err := New(Processors{
		Witness:   func(topo.Instance) (*Witness, error) { return &Witness{j}, nil },
		Bystander: func(topo.Instance) (*Bystander, error) { return &Bystander{j}, nil },
	})
	if err != nil {
		return nil, nil, err
	}
	d := t.Director()
	return t, scenarios.Commands{
		"limited":   d.SendCommandToLimited,
		"windowed":  d.SendCommandToWindowed,
		"delayed":   d.SendCommandToDelayed,
		"batch":     d.SendCommandToBatch,
		"monitored": d.SendCommandToMonitored,
		"sensor":    d.SendCommandToSensor,
	}, nil
}
