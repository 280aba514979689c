package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTakenNamesGiveWay checks that a name that means something else gets an underscore
// between its parts, and that each name is declared once.
func TestTakenNamesGiveWay(t *testing.T) {
	p, findings := build(t, []byte(`
version: 1
name: demo
processors: {cam: {}, cam-recorder: {}, cam-sender: {}, processor: {}, sender: {}, index: {}, record: {}, record-cam: {}}
edges:
  - cam -> cam-recorder: Raw
  - cam -> cam-sender: Raw
  - processor -> sender: Raw
  - record -> record-cam: Raw
  - sender -> index: CamProcessor
  - processor -> index: ProcessorSender
`))
	if len(findings) > 0 {
		t.Error(findings)
	}
	var apart []string
	declared := map[string]bool{}
	for _, n := range p.Names() {
		if declared[n.Ident] {
			t.Errorf("%s is declared twice", n.Ident)
		}
		declared[n.Ident] = true
		if strings.Contains(n.Ident, "_") {
			apart = append(apart, n.Ident+", "+p.NameText(n))
		}
	}
	want := []string{
		`Cam_Processor, the interface of processor "cam"`,
		`Cam_Recorder, the recorder of processor "cam"`,
		`Record_Cam, the recorder's constructor of processor "cam"`,
		`Cam_Sender, the sender of processor "cam"`,
		`Processor_Processor, the interface of processor "processor"`,
		`Processor__Sender, the sender of processor "processor"`,
		`Record_Sender, the recorder's constructor of processor "sender"`,
		`Processor_Sender, the index of processor "sender"`,
		`Processor_Index, the index of processor "index"`,
		`Record_Processor, the interface of processor "record"`,
	}
	if diff := cmp.Diff(want, apart); diff != "" {
		t.Error(diff)
	}
}
