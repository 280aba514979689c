// Package config has a configuration that the generated files import for itself.
package config

type Settings struct{ Size int }
