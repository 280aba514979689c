// Package foreign has processors and messages of other packages.
package foreign

import (
	"errors"

	"github.com/topogen/topogen/generated_test/foreign/model/v2"
	point "github.com/topogen/topogen/generated_test/foreign/topo"
	"github.com/topogen/topogen/runtime/topo"
)

type Feed struct{ Done bool }

func (f *Feed) Ping(out *FeedSender) error {
	if f.Done {
		return topo.Done
	}
	f.Done = true
	return errors.Join(
		out.SendOrder(model.Order{Account: "acme"}),
		out.SendLines(&model.Page[string]{Name: "acme", Items: []string{"a", "b"}}),
		out.SendLinesToPricing(nil),
		out.SendNumbers(model.Page[model.Number]{Items: []model.Number{1}}),
		out.SendWords([]string{"a"}),
		out.SendTable(map[string]point.Point{"a": {}}),
		out.SendRow([4]int{1}),
	)
}

type Sink struct{ Pages, Numbers, Words, Tables, Rows, Points int }

func (s *Sink) ReceiveLines(m *model.Page[string])         { s.Pages += len(m.Items) }
func (s *Sink) ReceiveNumbers(m *model.Page[model.Number]) { s.Numbers += len(m.Items) }
func (s *Sink) ReceiveWords(m []string)                    { s.Words += len(m) }
func (s *Sink) ReceiveTable(m *map[string]point.Point)     { s.Tables += len(*m) }
func (s *Sink) ReceiveRow(m [4]int)                        { s.Rows += m[0] }
func (s *Sink) ReceivePoint(m point.Point)                 { s.Points += m.X }
