// Package graph relates what is in the index: code, what happened, and what is known.
package graph
