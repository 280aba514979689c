// Package ordinary calls functions of a test with the rights of an ordinary user. Root may read and
// write everything, so root could not run a test about permissions otherwise.
package ordinary
