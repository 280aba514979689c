package emit

import (
	"crypto/sha256"
	"fmt"

	"github.com/dave/jennifer/jen"
)

// The wiring says again what the ports say: it lists the processors in the order of
// their indices, and makes as many instances as the senders choose from. Wiring and
// ports of two topologies may well compile together, and would then deliver messages
// to the wrong handlers. The two can meet on disk: a build may be killed between its
// two renames, and where not all processors bind the ports alone are written. So the
// ports declare a constant whose name has a hash of them, and the wiring mentions it. It
// begins with what to do: compilers say of it no more than that it is undefined.

// sealBytes is how much of the hash is in the name: enough against accidents, and the
// name stays readable.
const hashBytes = 8

// sealOf is the name of the constant for ports.
func buildConstantOf(parts [][]byte) Ident {
	h := sha256.New()
	for _, part := range parts {
		h.Write(part)
	}
	return mustIdent(fmt.Sprintf("runTopogenBuild%x", h.Sum(nil)[:hashBytes]))
}

// sealing is the declaration of the constant, for the end of a part.
func (m *model) declareBuildConstant() []byte {
	return fmt.Appendf(nil, "\n\n// The wiring mentions %[1]s, and so fits this state of the file alone.\nconst %[1]s = 0\n", m.buildConstant)
}

// sealed has the wiring compile beside the ports that it was made with.
func (p *part) useBuildConstant() {
	p.doc("If this does not compile, %s was written for another state of %s than this file. Run:", p.plan.PortsFile, p.plan.Source)
	p.commandLine()
	p.add(jen.Const().Id("_").Op("=").Add(id(p.buildConstant)))
}
