// Package machinenames has processors and types with the names of packages and
// types of the runtime, and a controller of another package.
package machinenames

import "github.com/topogen/topogen/generated_test/machinenames/model"

// Codec is the update.
type Codec = model.Codec

// Wire gets the outcomes of proposals of other processors.
type Wire struct{ Heard int }

func (w *Wire) ReceiveFsmOutcome(m *FsmOutcome) { w.Heard++ }
