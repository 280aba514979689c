// Package config has a configuration type that only the generated files import.
package config

type Settings struct{ Size int }
