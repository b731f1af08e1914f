// Package githubtest is a GitHub for tests: a third-party emulator, which runs on loopback and keeps state, behind a proxy
// that is stricter.
//
// The proxy adds ETags to answers and handles conditional requests, rejects unknown tokens, applies "since" where the
// emulator ignores it, injects faults (Fail) before or after it forwards a request, and records every request (Journal).
// Each request is validated by GitHub's API description: a request that GitHub would not accept fails the test. The proxy
// adds the features that the emulator lacks: reactions, the list of the comments on all issues, and of GraphQL the viewer
// and createCommitOnBranch.
//
// The emulator, Node.js and the description are npm packages, at the versions and with the digests of package-lock.json.
// Install puts them in a folder of the user's cache, which "go run ./cmd/reconcile/internal/tools/check github" does. Start
// skips a test, with a message, if they are missing; with RECONCILE_GITHUB_TESTS=required it fails.
package githubtest
