// Package repotest holds the tests of the repository as a whole: that imports keep to the floors of ARCHITECTURE.md, that
// documents name only what exists, and that the commands which they show print what they say.
package repotest
