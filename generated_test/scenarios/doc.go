// Package scenarios has the scenarios of dora's end-to-end tests of fault tolerance, for
// topologies of the same shape with any isolation of their processors. Each folder below
// has such a topology.
//
// The code here does not know where a processor runs. A processor gets its commands as
// messages of type Command, and reports its work to a witness as a Report. The witness runs
// in the test's own process. Each topology declares its own witness, because the methods
// of the witness use types of the generated package.
package scenarios
