// Package ordinary calls functions of a test with the rights of an ordinary user. A test about
// permissions then also runs as root, who may read and write everything.
package ordinary
