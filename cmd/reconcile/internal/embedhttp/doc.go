// Package embedhttp has vectors of texts made by an endpoint that speaks as OpenAI's does: POST /embeddings, with the
// model and the texts. Ollama, llama.cpp, vLLM and others do.
//
// # What is sent
//
// Texts go out in batches, a few batches at once, and as many requests in a minute as the settings say. A request that
// cannot be answered now (no connection, 408, 429, 5xx) is repeated with growing waits, or after the time that the
// endpoint names. A batch that is refused (400, 413, 422) is halved, and a text that is refused alone is cut, down to
// leastText bytes: models have limits of their own, and one long text must not keep all others from being found. A text
// that is asked for alone, as a query is, is waited for no longer than Options.Patience.
// Texts and the key go by https, or to this machine; no redirect is followed, since it would take both elsewhere. The
// key is in no error.
//
// # What is believed
//
// Nothing: an answer is read up to the size that it can have; each text must have exactly one vector, of the dimensions
// of the settings, of finite numbers that are not all zero. Vectors are scaled to length 1.
//
// # What is kept
//
// Every vector is kept at once, by the digest of model and text, so that no text is asked for twice: not by a rebuild,
// not after a failure half way, not by another process. See [Cache].
package embedhttp
