// Package other has a processor with a constructor.
package other

import "github.com/topogen/topogen/generated_test/construct/config"

type Thing struct{ Size int }

type Config struct{ Size int }

func New(c *Config) *Thing { return &Thing{c.Size} }

func Sized(s config.Settings) Thing { return Thing{s.Size} }

func (t *Thing) ReceiveInt(n int) { t.Size += n }
