// Package other has a processor that receives nothing yet.
package other

type Item struct{ N int }

type Answer struct{ N int }

type Other struct{}
