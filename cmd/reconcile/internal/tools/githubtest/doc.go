// Package githubtest is a GitHub for tests: an emulator of it by others, which runs on loopback and keeps state, behind a
// proxy of our own that makes it harder to please.
//
// The proxy gives answers ETags and honours conditions, refuses tokens that it does not know, applies "since" where the
// emulator forgets it, fails on command (Fail) before or after what was asked is done, and writes down every request
// (Journal). Each request is checked against GitHub's own description of its API: what GitHub would not understand fails
// the test. What the emulator lacks is added here: reactions, the list of the comments on all issues, and of GraphQL the
// viewer and createCommitOnBranch.
//
// The emulator, Node to run it with and the description are npm packages, at the versions and with the digests of
// package-lock.json. Install puts them in a folder of the user's cache, which "go run ./cmd/reconcile/internal/tools/check
// github" does. Start skips a test, and says so, where they are missing; with RECONCILE_GITHUB_TESTS=required it fails.
package githubtest
