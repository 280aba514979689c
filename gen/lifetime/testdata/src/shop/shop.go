// Package shop has a topology whose processors are in another package.
package shop

import "pricing"

// Alias names a processor by another name.
type Alias = pricing.Careful
