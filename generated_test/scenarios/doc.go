// Package scenarios has the stories by which dora tests its fault tolerance end to
// end, as something that can be told to any topology of the same shape: how its
// processors are isolated is for the topology to say. Each folder below has one.
//
// So nothing here knows where a processor runs. What a processor is to do comes to
// it as a Command, and what it has done goes to a witness as a Report. The witness
// runs in the test's own process; it is the topology's, since what it hears of has
// types of the generated package.
package scenarios
