// Package embed makes vectors of texts, so that texts can be compared by what they are about.
package embed
