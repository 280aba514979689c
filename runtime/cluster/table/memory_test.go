package table_test

import (
	"testing"

	"github.com/topogen/topogen/internal/test/tabletest"
	"github.com/topogen/topogen/runtime/cluster/table"
)

type memoryCluster struct{ *table.Memory }

func (m memoryCluster) Open(*testing.T, string) table.Table { return m.Memory.Open() }

func TestMemory(t *testing.T) {
	tabletest.Run(t, tabletest.Engine{
		New: func(*testing.T) tabletest.Cluster { return memoryCluster{table.NewMemory()} },
	})
}
