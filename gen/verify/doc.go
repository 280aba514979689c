// Package verify makes sure of what emit has made before anybody sees it: the parts
// parse and type-check together with the user's files, bodies included; they are
// formatted as gofmt does and joined.
package verify
