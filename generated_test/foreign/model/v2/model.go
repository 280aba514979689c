// Package model holds messages.
package model

type Order struct{ Account string }

type Number int

type Page[T any] struct {
	Name  string
	Items []T
}

func (p *Page[T]) Clone() *Page[T] { return &Page[T]{p.Name, append([]T(nil), p.Items...)} }
