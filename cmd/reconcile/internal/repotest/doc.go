// Package repotest holds the tests of the repository as a whole: imports keep to the floors of ARCHITECTURE.md, documents
// name only things that exist, and the commands in them print the documented output.
package repotest
