// Package secrets finds secrets in text, and removes them: keys and tokens of some two hundred services, private keys,
// passwords in assignments, addresses and headers, and text between <private> and </private>.
//
// Everything in a tree is visible to all readers of the repository, and stays in its history. So this package filters
// all text of people or agents before it is written: memory, results and logs of runs, messages.
//
// # Rules
//
// The rules are those of gitleaks (https://github.com/gitleaks/gitleaks, MIT, see LICENSE-gitleaks), as data: its
// names and operators, regular expressions, entropies, exceptions and stop words. The library itself is not linked: it
// and its dependencies add 7 MB to a program, and 2 ms to each of its starts (1 ms without). gitleaks.rules is made
// from its configuration by cmd/reconcile/internal/tools/gen, which splits each regular expression so that it need not be
// run over the whole text: one pass finds all words that lead to a rule (see automaton), and only there the rule is
// tried. A text without any of them costs that pass; nothing is prepared before the first text is searched, and no
// regular expression is compiled before a text may match it. Time is linear in the text, whatever the text is.
//
// Own rules find more (own.go): the value of a name like password at any entropy, also in a sentence, passwords in
// addresses, connection strings, commands and files of passwords, their hashes, private keys that were cut off, data of
// Kubernetes' Secrets, and the examples that gitleaks excuses. They find less in one point: digests, paths, and ids of
// observations and clarifications are not secrets under a name that says only "key".
//
// A text has no file name here, so that rules and exceptions of gitleaks for certain files do not apply, nor do its
// comments that allow a secret.
package secrets
