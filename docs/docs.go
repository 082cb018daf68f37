// Package docs holds what of the documentation the binaries show themselves, so that it is written once.
package docs

import _ "embed"

// Denials is denials.md, with a section for each code.
//
//go:embed denials.md
var Denials string
