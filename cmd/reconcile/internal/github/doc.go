// Package github speaks with the API of GitHub (or of a server that speaks as it does) as politely as GitHub asks for.
//
//   - It asks on condition: answers are kept on disk with their ETag, and an unchanged one costs nothing of the limit.
//   - It reads to the end: every page of a list, also where the last one that is known has just become full.
//   - It obeys limits, primary and secondary ones: within Options.MaxWait it waits, beyond that it returns *Limited and
//     sends nothing before the limit ends, also in the next process that uses the same cache.
//   - It sends one request at a time, and at most one write each Options.Pace.
//   - It backs off, with jitter, when GitHub does not answer or answers with a fault of its own (5xx), but repeats only
//     what may be done twice. What created something, perhaps, ends as *Uncertain: look before you do it again.
//   - A dry client reads as any other, and hands what it would have written to Options.Dry.
//
// What GitHub answers is untrusted: bodies are bounded, redirects are not followed, the token goes to one host only and
// is in no error. "Gone" is only what GitHub itself says in its own form.
package github
