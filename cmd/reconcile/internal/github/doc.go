// Package github is a client of the API of GitHub (or of a compatible server) that follows GitHub's rules for clients.
//
//   - It sends conditional requests: responses are cached on disk with their ETag, and an unchanged one does not count against the limit.
//   - It reads every page of a list, also if the last known page has just become full.
//   - It obeys limits, primary and secondary ones: within Options.MaxWait it waits, beyond that it returns *Limited and sends nothing before the limit ends, also in the next process with the same cache.
//   - It sends one request at a time, and at most one write each Options.Pace.
//   - It backs off, with jitter, when GitHub does not answer or fails (5xx), but retries only idempotent calls. A call that may have created something ends as *Uncertain: look before you repeat it.
//   - A dry client reads like any other, and passes its writes to Options.Dry.
//
// GitHub's responses are untrusted: bodies are bounded, redirects are not followed, the token is sent to one host only and
// is in no error. An object is gone only if GitHub itself reports that in its own form.
package github
